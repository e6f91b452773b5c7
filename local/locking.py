"""One command at a time works on a state folder."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from srvmod.local.errors import LocalError
from srvmod.local.paths import State


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
