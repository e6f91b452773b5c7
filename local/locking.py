"""One command at a time works on a state folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from srvmod.local.errors import LocalError
from srvmod.local.paths import State


def at_work(state: State) -> tuple[str, int] | None:
    """The command that holds the state folder now and its process, or None. Only looks: takes no lock itself."""
    try:
        found = state.lock_file.stat()
        told = state.lock_file.read_text()
        held = Path("/proc/locks").read_text()
    except OSError:
        return None
    command, _, pid = told.strip().partition(" ")
    # a command that was killed leaves its name in the file, but no lock
    # process and inode only: some file systems (btrfs) show another device there than stat does
    inode = f":{found.st_ino}"
    if pid.isdigit() and any(f[4] == pid and f[5].endswith(inode) for f in map(str.split, held.splitlines())):
        return command, int(pid)
    return None


@contextlib.contextmanager
def locked(state: State, command: str) -> Iterator[None]:
    """Hold the state folder for `srvmod local <command>`. The kernel gives it back however the holder ends.

    Raises LocalError that names the command and process that has it.
    """
    state.make()
    with state.lock_file.open("a+") as lock:
        lock.seek(0)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder, _, pid = lock.read().strip().partition(" ")
            raise LocalError(
                f"`srvmod local {holder or 'up'}` (process {pid or 'unknown'}) works on {state.root}",
                f"wait for it, or end it with Ctrl-C (`kill -INT {pid or 'PID'}`), "
                f"then run `srvmod local {command}` again",
            ) from error
        with contextlib.suppress(OSError):  # a full disk: the lock holds all the same, it only isn't named
            lock.truncate(0)
            lock.write(f"{command} {os.getpid()}\n")
            lock.flush()
        yield
