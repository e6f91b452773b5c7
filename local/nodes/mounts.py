"""Mounts of one node, made in a mount namespace of its own. Linux only; needs CAP_SYS_ADMIN."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

MS_BIND, MS_REC, MS_PRIVATE, MS_SHARED = 0x1000, 0x4000, 1 << 18, 1 << 20
CLONE_NEWNS = 0x20000

_libc = ctypes.CDLL(None, use_errno=True)


def _call(what: str, result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def own_namespace() -> None:
    """Moves this process into a mount namespace of its own, from which nothing spreads to the old one."""
    _call("unshare of the mount namespace", _libc.unshare(CLONE_NEWNS))
    mount("none", Path("/"), flags=MS_REC | MS_PRIVATE)


def mount(source: str | Path, target: Path, kind: str = "", flags: int = 0, options: str = "") -> None:
    """mount(2). Raises OSError that names source and target."""
    result = _libc.mount(
        str(source).encode(), str(target).encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _call(f"mount of {source} on {target}", result)


def bind(source: Path, target: Path) -> None:
    mount(source, target, flags=MS_BIND | MS_REC)


def share_all() -> None:
    """Lets mounts that the kubelet makes reach containers that ask for it, as on a machine with systemd."""
    mount("none", Path("/"), flags=MS_REC | MS_SHARED)
