"""Where everything of a node lies, and the addresses that follow from its slot number."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from srvmod.local.paths import State

NETWORK = "10.88.0.0/16"
FIRST_NODE_HOST = 11  # node addresses: 10.88.0.11, 10.88.0.12, ...
MAX_SLOTS = 8

# Paths as a node sees them inside its own mount namespace: the same as on a p5 with the EKS image.
CONTAINERD_SOCKET = Path("/run/containerd/containerd.sock")
KUBELET_ROOT = Path("/var/lib/kubelet")
NVME = Path("/mnt/k8s-disks/0")


@dataclass(frozen=True)
class Slot:
    """One place for a real node; `number` counts from 0.

    Everything but containerd's store lies in the part of the state folder that `srvmod local down` removes; the
    store keeps the imported images for the next start.
    """

    state: State
    number: int

    def __post_init__(self) -> None:
        if not 0 <= self.number < MAX_SLOTS:
            raise ValueError(f"slot {self.number}: allowed are 0 to {MAX_SLOTS - 1}")

    @property
    def root(self) -> Path:
        return self.state.live / "nodes" / str(self.number)

    @property
    def containerd(self) -> Path:
        return self.state.cache / "nodes" / str(self.number) / "containerd"

    @property
    def record(self) -> Path:
        """Which Node object holds the slot; absent while the slot is free."""
        return self.root / "node.json"

    @property
    def kubelet(self) -> Path:
        return self.root / "kubelet"

    @property
    def nvme(self) -> Path:
        """The node's instance store, seen by its pods as /mnt/k8s-disks/0."""
        return self.root / "nvme"

    @property
    def pod_logs(self) -> Path:
        return self.root / "pod-logs"

    @property
    def cni(self) -> Path:
        return self.root / "cni"

    @property
    def config(self) -> Path:
        return self.root / "config"

    @property
    def hardware(self) -> Path:
        """The pretended p5's files; the same for every slot."""
        return self.state.live / "nodes" / "p5"

    @property
    def address(self) -> str:
        return f"10.88.0.{FIRST_NODE_HOST + self.number}"

    @property
    def pod_range(self) -> tuple[str, str]:
        """First and last pod address. All pods are on one bridge, so the mask stays that of `NETWORK`."""
        return f"10.88.{self.number + 1}.2", f"10.88.{self.number + 1}.254"

    @property
    def cgroup(self) -> str:
        return f"{cgroup_root(self.state)}/slot{self.number}"

    def component(self, name: str) -> str:
        """The name of one of the slot's processes: its pid and log file carry it."""
        return f"{name}-{self.number}"


def cgroup_root(state: State) -> str:
    """The cgroup of one stack, told from those of other checkouts by its state folder's path."""
    return "/srvmod-" + hashlib.sha256(str(state.root.resolve()).encode()).hexdigest()[:8]
