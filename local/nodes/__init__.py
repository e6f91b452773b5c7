"""Real Kubernetes nodes on one machine that believe they are p5.48xlarge.

Each node is a slot: a mount namespace of its own with containerd, kubelet and the pretended GPU plugin in it, its
own cgroup root, its own NVMe folder and its own part of the pod network. `launcher` gives Karpenter's Node objects
to slots; `host.check_host` says what a machine lacks; `cleanup.cleanup` leaves nothing behind.
"""
