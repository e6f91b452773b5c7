"""Whether this machine can hold the nodes; asked before anything starts."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from srvmod.local.nodes import cgroups
from srvmod.local.paths import State
from srvmod.tools import find

NEEDED_BYTES = 6 * 1000**3
"""Images packed (0.3 GB), imported and unpacked on two nodes (2 GB), logs and weights, with room to spare."""
LEAST_BYTES = 1 * 1000**3
"""Free space for logs, etcd and weights that is needed even when all images are there."""
SOCKET_PATH_BYTES = 107
"""Longest path of a unix socket: sun_path of unix(7) has 108 bytes, the last of which is zero."""
PROGRAMS = {
    "ip": ("the stack's bridge and addresses", "iproute2"),
    "unshare": ("the stack's own namespaces", "util-linux"),
    "nsenter": ("entering a node's namespace", "util-linux"),
    "mount": ("volumes of pods", "mount"),
    "ldd": ("packing programs with their libraries into images", "libc-bin"),
}
"""Program -> (what it is needed for, Debian's package)."""
NAMESPACES = ("net", "mnt", "pid", "ipc", "uts", "cgroup")


@dataclass(frozen=True)
class Problem:
    """Something the machine lacks: what, why it is needed, and how to mend it."""

    what: str
    why: str
    fix: str

    def __str__(self) -> str:
        return f"{self.what} (needed for {self.why}): {self.fix}"


def check(state_root: Path) -> list[Problem]:
    """All problems at once. What needs root is only asked when we are root."""
    if not sys.platform.startswith("linux"):
        return [Problem(f"the system is {sys.platform}", "containers and namespaces", "run it on Linux, or in a VM")]
    found = [*_programs(), *_kernel(), *_cgroups(), *_state_folder(state_root)]
    if os.geteuid() != 0:
        found.insert(
            0, Problem("not root", "mounts, network and cgroups of the nodes", "run the same command with sudo -E")
        )
        return found
    return found + (_trials(state_root) if not found else [])


def _programs() -> list[Problem]:
    found = [
        Problem(f"`{name}` isn't on PATH", why, f"install it (Debian: apt install {package})")
        for name, (why, package) in PROGRAMS.items()
        if shutil.which(name) is None
    ]
    if find("runc") is None and shutil.which("cc") is None and shutil.which("gcc") is None:
        fix = "install runc (Debian: apt install runc), or a C compiler to build it (apt install gcc libc6-dev)"
        found.append(Problem("neither runc nor a C compiler is there", "containers", fix))
    return found


def _kernel() -> list[Problem]:
    found = []
    for name in NAMESPACES:
        if not Path(f"/proc/self/ns/{name}").exists():
            found.append(
                Problem(
                    f"the kernel has no {name} namespaces", "keeping the stack apart", "use a distribution's kernel"
                )
            )
    if not _has_filesystem("overlay"):
        found.append(Problem("the kernel has no overlay file system", "images of containers", "modprobe overlay"))
    for path in (Path("/sys/devices/system/node"), Path("/sys/devices/system/cpu")):
        if not path.is_dir():
            found.append(
                Problem(
                    f"{path} isn't there", "pretending two NUMA nodes", "use a kernel with CONFIG_NUMA and mount /sys"
                )
            )
    return found


def _has_filesystem(name: str) -> bool:
    known = {line.split()[-1] for line in Path("/proc/filesystems").read_text().splitlines()}
    # a module that is not loaded yet is loaded by the mount itself
    return name in known or bool(list(Path("/lib/modules", os.uname().release).glob(f"**/{name}.ko*")))


def _cgroups() -> list[Problem]:
    if not cgroups.MOUNT.is_dir() or not any(cgroups.MOUNT.iterdir()):
        return [Problem(f"{cgroups.MOUNT} isn't mounted", "the pods' limits", "mount cgroup2, or boot with systemd")]
    missing = cgroups.missing_controllers()
    if not missing:
        return []
    names = ", ".join(sorted(missing))
    fix = "boot without cgroup_disable and, in a container, with the machine's cgroups delegated"
    return [Problem(f"cgroup controllers missing: {names} (version {cgroups.version()})", "the pods' limits", fix)]


def _state_folder(state_root: Path) -> list[Problem]:
    socket = State(state_root).socket
    length = len(os.fsencode(socket))
    found = []
    if length > SOCKET_PATH_BYTES:
        longest = SOCKET_PATH_BYTES - (length - len(os.fsencode(state_root)))
        what = (
            f"the state folder's path {state_root} has {len(os.fsencode(state_root))} bytes, at most {longest} will do"
        )
        why = f"the unix socket {socket.relative_to(state_root)} in it"
        found.append(Problem(what, why, "choose a shorter one: SRVMOD_STATE=/path"))
    if state_root.exists() and not state_root.is_dir():
        return [*found, Problem(f"{state_root} is a file", "the state folder", "choose another: SRVMOD_STATE=/path")]
    return found + _disk(state_root)


def _disk(state_root: Path) -> list[Problem]:
    place = _existing(state_root)
    if not os.access(place, os.W_OK | os.X_OK):
        return [
            Problem(
                f"{place} can't be written to by uid {os.geteuid()}",
                "the state folder",
                "choose another: SRVMOD_STATE=/path",
            )
        ]
    free = shutil.disk_usage(place).free
    # what an earlier start has packed and unpacked needn't be written again
    needed = max(LEAST_BYTES, NEEDED_BYTES - _used(State(state_root).cache))
    if free >= needed:
        return []
    what = f"{place} has {free:,} bytes free, {needed:,} bytes are needed"
    return [
        Problem(
            what,
            "images, logs and weights",
            f"free {needed - free:,} bytes there, or choose another place: SRVMOD_STATE=/path",
        )
    ]


def _used(folder: Path) -> int:
    """Bytes that the folder takes on its disk."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(path, name).lstat().st_blocks * 512
    return total


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    return folder if folder.is_dir() else _existing(folder.parent)


def _trials(state_root: Path) -> list[Problem]:
    """Does for a moment what the stack does, and says what is refused."""
    place = _existing(state_root)
    trials: list[tuple[Callable[[], str], str, str]] = [
        (
            lambda: _unshare("true", place),
            "own network, mount and pid namespaces",
            "in a container, run it privileged; else raise user.max_net_namespaces and user.max_mnt_namespaces",
        ),
        (
            lambda: _unshare("ip link add probe0 type bridge && ip link add probe1 type veth peer name probe2", place),
            "bridge and veth interfaces, the pods' network",
            "modprobe bridge veth; in a container, run it privileged",
        ),
        (
            lambda: _unshare(
                "mkdir -p probe/lower probe/upper probe/work probe/merged && "
                "mount -t overlay probe -o lowerdir=probe/lower,upperdir=probe/upper,workdir=probe/work probe/merged",
                place,
            ),
            f"an overlay on the state folder's file system ({place}, {_type_of(place)})",
            "put the state folder on ext4 or xfs, not on another overlay: SRVMOD_STATE=/path",
        ),
        (
            lambda: _unshare("printf '#!/bin/sh\\n' > probe && chmod +x probe && ./probe", place),
            f"running programs from the state folder ({place}), where containers have theirs",
            "mount it without noexec, or choose another place: SRVMOD_STATE=/path",
        ),
        (
            _make_cgroup,
            "a cgroup of the stack's own",
            "run it outside a container, or in one with the machine's cgroups (--privileged --cgroupns=host)",
        ),
    ]
    found = []
    for trial, what, fix in trials:
        said = trial()
        if said:
            found.append(Problem(f"{what} can't be had: {said}", "the nodes", fix))
            if trial is trials[0][0]:
                break  # the others need namespaces themselves
    return found


def _type_of(place: Path) -> str:
    """The type of the file system that holds `place`, as the kernel's mount table has it."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        point = fields[4]
        if place.is_relative_to(point) and len(point) >= len(best):
            best, kind = point, fields[fields.index("-") + 1]
    return kind


def _unshare(script: str, place: Path) -> str:
    """Runs the script in namespaces that end with it, in an empty folder of `place`; returns what went wrong."""
    scratch = place / f".probe-{os.getpid()}"
    try:
        scratch.mkdir()
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script]
        answer = subprocess.run(command, cwd=scratch, capture_output=True, text=True, check=False)
        said = answer.stderr.strip().splitlines() or [f"exit status {answer.returncode}"]
        return "" if answer.returncode == 0 else said[0]
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _make_cgroup() -> str:
    name = f"/srvmod-probe-{os.getpid()}"
    try:
        cgroups.create(name)
    except OSError as error:
        return f"{error.filename or ''}: {error.strerror}"
    finally:
        cgroups.remove(name)
    return ""
