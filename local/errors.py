"""The one kind of error that `srvmod local` shows a person: what happened, where, and what to do."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import sys
import traceback
from pathlib import Path

LOW_DISK_BYTES = 200 * 1000**2
"""Below this, etcd, containerd and logs fail in ways that don't say so."""
LOW_DISK_INODES = 1000
ERROR_FILE = "last-error.txt"


class LocalError(Exception):
    """`what` happened (with the value found), `fix` is the next command or change."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}\n  fix: {fix}")
        self.what, self.fix = what, fix


def low_disk(folder: Path) -> str:
    """One line when the disk of `folder` is (nearly) full, of bytes or of inodes, else ""."""
    place = folder
    while not place.exists():
        place = place.parent
    free, inodes = shutil.disk_usage(place).free, os.statvfs(place)
    short = []
    if free < LOW_DISK_BYTES:
        short.append(f"{free:,} bytes free, {LOW_DISK_BYTES:,} are needed to go on")
    # some file systems don't count inodes and say 0 of 0
    if inodes.f_files and inodes.f_favail < LOW_DISK_INODES:
        short.append(f"{inodes.f_favail:,} inodes (files) free, {LOW_DISK_INODES:,} are needed to go on")
    return f"{place} has {' and '.join(short)}" if short else ""


def explain(error: Exception, root: Path) -> LocalError:
    """Any error as one for a person. `root` is the state folder; a full disk is named whatever it broke."""
    found = _explain(error, root)
    disk = _careful_low_disk(root)
    if disk and "bytes free" not in found.what:
        return LocalError(f"{found.what}\n{disk}", f"make room there; then {found.fix}")
    return found


def _careful_low_disk(root: Path) -> str:
    try:
        return low_disk(root)
    except OSError:
        return ""


def _explain(error: Exception, root: Path) -> LocalError:
    from srvmod.local.api import ApiError
    from srvmod.local.nodes.images.layer import PackingError
    from srvmod.local.nodes.leftovers import LeftoverError
    from srvmod.tools import ToolError

    known: LocalError | None = None
    if isinstance(error, LocalError):
        known = error
    elif isinstance(error, ToolError):
        known = LocalError(error.problem, error.fix)
    elif isinstance(error, PackingError):
        known = LocalError(str(error), "mend what the message names and run `srvmod local up` again")
    elif isinstance(error, LeftoverError):
        known = LocalError(str(error), "end what holds it and run `srvmod local down` again")
    elif isinstance(error, OSError):
        known = _of_system(error, root)
    if known is not None:
        return known
    if isinstance(error, ApiError) or type(error).__module__.split(".")[0] == "botocore":
        asked = "the API server" if isinstance(error, ApiError) else "the simulated AWS"
        said = str(error).strip().splitlines() or [""]
        return LocalError(
            f"{asked} didn't do what was asked: {type(error).__name__}: {said[0][:300]}",
            "`srvmod local status` says what is down; `srvmod local up` starts it again",
        )
    return LocalError(
        f"{type(error).__name__}: {error}",
        f"this is a fault of srvmod; run the command again, and report it with {_kept(error, root)}",
    )


def _of_system(error: OSError, root: Path) -> LocalError | None:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LocalError(
            f"{where}no space left; the state folder is {root}",
            "`srvmod local up` goes on; or choose another place: `srvmod local down`, then SRVMOD_STATE=/path",
        )
    if error.errno in (errno.EACCES, errno.EPERM) and os.geteuid() != 0:
        return not_root(f"{where}{error.strerror}")
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return LocalError(f"{where}{error.strerror}", f"make it writable (state folder: {root}), or SRVMOD_STATE=/path")
    return None


def not_root(why: str) -> LocalError:
    """The command that was typed needs root: why, and the same command with it."""
    command = shlex.join([str(Path(sys.executable).parent / "srvmod"), *sys.argv[1:]])
    return LocalError(f"not root (uid {os.geteuid()}): {why}", f"run it as root: `sudo --preserve-env {command}`")


def _kept(error: Exception, root: Path) -> str:
    """Where the traceback was written; where that is impossible, its last line of code."""
    text = "".join(traceback.format_exception(error))
    file = root / ERROR_FILE
    try:
        file.write_text(text)
    except OSError:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        return f"{frame.filename}:{frame.lineno}"
    return str(file)
