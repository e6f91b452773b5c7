"""What a local stack could leave behind on the machine: taken before `up` and compared after `down`."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

from srvmod.local.nodes.hardware import KERNEL_SETTINGS
from srvmod.local.nodes.paths import cgroup_root
from srvmod.local.paths import State

FOLDERS = ("/", "/etc", "/mnt", "/opt", "/run", "/var/lib", "/var/log", "/etc/cni", "/var/lib/kubelet", "/certs")
"""Where Kubernetes, containerd, CNI and Envoy Gateway put files by themselves."""
AT_HOME = (".kube", ".aws", ".pulumi", ".docker")
"""What clients write into the user's home when nothing else is said."""
PASSING = re.compile(r"pulumi|kube|helm|envoy|karpenter|containerd", re.IGNORECASE)
"""What these write into the folder of temporary files."""
SETTINGS = (*KERNEL_SETTINGS, "net/ipv4/ip_forward")
PATIENCE_SECONDS = 5.0
"""Other programs' checks and containers come and go; what stays longer than this is left behind."""


def machine(state: Path) -> dict[str, set[str]]:
    """Kind of thing -> what of it is there now; of stacks, only the one in `state`."""
    mounts = {
        " ".join([fields[4], *fields[fields.index("-") + 1 :][:2]])
        for fields in (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    }
    # cgroups of pods and containers, and of this stack; other stacks, if any run, have theirs
    ours = re.compile(
        rf"{cgroup_root(State(state))}(/|$)|^(?!.*/srvmod-[0-9a-f]{{8}}).*(srvmod|kubepods|[0-9a-f]{{64}})"
    )
    groups = {path for path, _, _ in os.walk("/sys/fs/cgroup") if ours.search(path)}
    folders = [*map(Path, FOLDERS), *(Path.home() / name for name in AT_HOME)]
    files = {str(item) for folder in folders if folder.is_dir() for item in (folder, *folder.iterdir())}
    files |= {str(item) for item in Path(tempfile.gettempdir()).iterdir() if PASSING.search(item.name)}
    settings = {
        f"{name}={Path('/proc/sys', name).read_text().strip()}" for name in SETTINGS if Path("/proc/sys", name).exists()
    }
    links = {link.name for link in Path("/sys/class/net").iterdir()}
    return {"mounts": mounts, "cgroups": groups, "interfaces": links, "files": files, "settings": settings}


def left_behind(before: dict[str, set[str]], state: Path) -> dict[str, list[str]]:
    """What is there now and wasn't before, by kind; empty when the stack in `state` left nothing."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        now = machine(state)
        left = {kind: sorted(now[kind] - before[kind]) for kind in now if now[kind] - before[kind]}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.5)


def processes_of(state: Path) -> list[str]:
    """Processes whose command line or environment names the state folder, ourselves and our parents excepted."""
    mine, pid = set(), os.getpid()
    while pid > 1:
        mine.add(pid)
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in mine:
            continue
        try:
            command, variables = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
        except OSError:
            continue
        words = command.split(b"\0")
        folder = os.fsencode(state / "local")
        if any(folder in word or word == os.fsencode(state) for word in words) or folder in variables:
            found.append(f"{entry.name} {command.decode(errors='replace').replace(chr(0), ' ')}")
    return found
