"""Container images packed from files of this machine: nothing is pulled, nothing needs a container engine."""
