"""The cgroups of a node: version 1 (one tree per controller) and version 2 (one tree)."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

MOUNT = Path("/sys/fs/cgroup")
NEEDED = frozenset({"cpu", "cpuset", "memory", "pids"})


def version(mount: Path = MOUNT) -> int:
    """2 when the machine has the unified tree alone, otherwise 1."""
    return 2 if (mount / "cgroup.controllers").exists() else 1


def missing_controllers(mount: Path = MOUNT) -> frozenset[str]:
    """Controllers that a node needs and the machine doesn't offer."""
    if version(mount) == 2:
        return NEEDED - set((mount / "cgroup.controllers").read_text().split())
    return frozenset(name for name in NEEDED if not (mount / name / "tasks").exists())


def trees(mount: Path = MOUNT) -> list[Path]:
    """The roots in which a cgroup has to be made: one in version 2, one per controller in version 1."""
    if version(mount) == 2:
        return [mount]
    found: dict[tuple[int, int], Path] = {}
    for tree in sorted(mount.iterdir()):
        if (tree / "cgroup.procs").exists():
            # cpu and cpuacct are often one tree under two names; systemd's and a version 2 tree are among them
            stat = tree.stat()
            found.setdefault((stat.st_dev, stat.st_ino), tree)
    return list(found.values())


# A cgroup counts like this many processes outside it when CPU time is short: engines as much as the control plane.
PROCESSES_WORTH = 8


def create(path: str, mount: Path = MOUNT) -> None:
    """Makes the cgroup `path` (as "/srvmod-1/slot0") ready to hold pods. Raises OSError where that is refused."""
    parts = path.strip("/").split("/")
    for tree in trees(mount):
        parent = tree
        for part in parts:
            _delegate(parent, mount)
            child = parent / part
            child.mkdir(exist_ok=True)
            for name in ("cpuset.cpus", "cpuset.mems"):
                # A new version 1 cpuset is empty and takes no process.
                if version(mount) == 1 and (child / name).exists() and not (child / name).read_text().strip():
                    (child / name).write_text((parent / name).read_text())
            for name, share in (("cpu.shares", 1024), ("cpu.weight", 100)):
                if (child / name).exists():
                    (child / name).write_text(str(share * PROCESSES_WORTH))
            parent = child
        _delegate(parent, mount)


def _delegate(folder: Path, mount: Path) -> None:
    """Version 2: lets the children of `folder` use its controllers. Version 1 has nothing to do."""
    if version(mount) == 2:
        offered = set((folder / "cgroup.controllers").read_text().split())
        wanted = sorted(offered & (NEEDED | {"io", "hugetlb"}))
        (folder / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))


def processes(path: str, mount: Path = MOUNT) -> set[int]:
    """All pids in the cgroup and below it, as numbered in the caller's pid namespace."""
    found: set[int] = set()
    for tree in trees(mount):
        for file in (tree / path.strip("/")).rglob("cgroup.procs"):
            with contextlib.suppress(OSError):
                found |= {int(line) for line in file.read_text().split()}
    return found - {0}  # 0 is a process of a foreign pid namespace


def remove(path: str, mount: Path = MOUNT, patience: float = 5.0) -> list[Path]:
    """Kills what is left in the cgroup and removes it with everything below.

    Returns the folders that could not be removed within `patience` seconds; an empty list when all are gone.
    """
    deadline = time.monotonic() + patience
    while True:
        for pid in processes(path, mount):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        left: list[Path] = []
        for tree in trees(mount):
            top = tree / path.strip("/")
            folders = sorted((p for p in top.rglob("*") if p.is_dir()), key=lambda p: -len(p.parts))
            for folder in [*folders, *([top] if top.exists() else [])]:
                try:
                    folder.rmdir()
                except FileNotFoundError:
                    continue
                except OSError:
                    left.append(folder)
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)
