"""What the stack's namespaces are made to look like: a root file system and a network of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from srvmod.local import facts


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def own_root(scratch: Path, keep: list[Path]) -> None:
    """Give this mount namespace a root of its own: the machine's files below, a tmpfs above that takes all writes.

    So paths that parts insist on (/certs, /var/lib/kubelet, /mnt/k8s-disks) exist for them and for nobody else.
    `keep` are folders that stay the machine's own (checkout, state), without what is mounted below them.
    """
    run("mount", "--make-rprivate", "/")
    scratch.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "mode=0755", "srvmod-root", str(scratch))
    for name in ("upper", "work", "root"):
        (scratch / name).mkdir()
    root = scratch / "root"
    run(
        "mount",
        "-t",
        "overlay",
        "srvmod-root",
        "-o",
        f"lowerdir=/,upperdir={scratch}/upper,workdir={scratch}/work",
        str(root),
    )
    for path, how in [(Path("/proc"), "--rbind"), (Path("/dev"), "--rbind"), *((path, "--bind") for path in keep)]:
        target = root / path.relative_to("/")
        target.mkdir(parents=True, exist_ok=True)
        run("mount", how, str(path), str(target))
    # a sysfs of its own, so that it shows this network namespace; the machine's cgroups below it
    run("mount", "-t", "sysfs", "sysfs", str(root / "sys"))
    run("mount", "--rbind", "/sys/fs/cgroup", str(root / "sys/fs/cgroup"))
    old = root / ".machine"
    old.mkdir()
    os.chdir(root)
    run("pivot_root", ".", ".machine")
    os.chroot(".")
    os.chdir("/")
    run("umount", "-l", "/.machine")


def own_network() -> None:
    """Loopback, and the bridge that holds node, pod and service addresses of this stack alone."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", facts.BRIDGE, "type", "bridge")
    addresses = [f"{facts.BRIDGE_ADDRESS}/{facts.BRIDGE_PREFIX_LENGTH}", f"{facts.API_SERVICE_ADDRESS}/32"]
    addresses += [f"10.88.0.{11 + slot}/32" for slot in range(facts.REAL_NODE_SLOTS)]
    for address in addresses:
        run("ip", "addr", "add", address, "dev", facts.BRIDGE)
    run("ip", "link", "set", facts.BRIDGE, "up")
    run("ip", "route", "add", "default", "via", facts.BRIDGE_ADDRESS)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
