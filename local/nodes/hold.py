"""The process that holds a node's mount namespace: `python -m srvmod.local.nodes.hold STATE SLOT`.

It makes the namespace look like a p5.48xlarge with the EKS image, writes `ready` on standard output and then only
waits. containerd and kubelet enter it together: apart, the kubelet's tmpfs volumes would stay invisible to the
containers. It runs inside the stack's own root file system, so mount points that it makes are nobody else's, and
ends with the stack's pid namespace.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from srvmod.local.nodes import mounts
from srvmod.local.nodes.hardware import KERNEL_SETTINGS
from srvmod.local.nodes.paths import CONTAINERD_SOCKET, KUBELET_ROOT, NVME, Slot
from srvmod.local.paths import State


def make_node(slot: Slot) -> None:
    """Mounts everything of the node; call it in a mount namespace of its own."""
    hardware = slot.hardware
    runtime = CONTAINERD_SOCKET.parent
    runtime.mkdir(parents=True, exist_ok=True)
    # as /run on a machine: what runs is forgotten when the machine is switched off
    mounts.mount("tmpfs", runtime, "tmpfs", options="mode=711")
    for source, target in (
        (slot.kubelet, KUBELET_ROOT),
        (slot.containerd, Path("/var/lib/containerd")),
        (slot.cni, Path("/var/lib/cni")),
        (slot.pod_logs, Path("/var/log/pods")),
        (slot.nvme, NVME),
    ):
        source.mkdir(parents=True, exist_ok=True)
        target.mkdir(parents=True, exist_ok=True)
        mounts.bind(source, target)
    for source, target in (
        (hardware / "node", Path("/sys/devices/system/node")),
        (hardware / "cpu", Path("/sys/devices/system/cpu")),
        (hardware / "meminfo", Path("/proc/meminfo")),
        (hardware / "cpuinfo", Path("/proc/cpuinfo")),
    ):
        mounts.bind(source, target)
    for path, value in KERNEL_SETTINGS.items():
        target = Path("/proc/sys") / path
        if target.exists():
            own = slot.root / "proc-sys" / path
            own.parent.mkdir(parents=True, exist_ok=True)
            own.write_text(f"{value}\n")
            mounts.bind(own, target)
    mounts.share_all()


def main(arguments: list[str]) -> None:
    state, number = arguments
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    mounts.own_namespace()
    make_node(Slot(State(Path(state)), int(number)))
    print("ready", flush=True)
    while True:
        signal.pause()


if __name__ == "__main__":
    main(sys.argv[1:])
