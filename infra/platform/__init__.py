"""What the cluster needs before anything is served: namespaces, pools, device plugin, gateway."""
