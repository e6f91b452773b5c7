"""One build at a time per tools folder, and SIGTERM treated like Ctrl-C while one runs."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from srvmod.tools import paths

POLL_S = 0.5


@contextmanager
def only_run(say: Callable[[str], None]) -> Iterator[None]:
    """Hold the tools folder's lock, waiting for another run to end; leftovers of killed runs are removed first.

    The kernel gives the lock back when its holder ends, however it ends.
    """
    paths.LOCK.parent.mkdir(parents=True, exist_ok=True)
    with paths.LOCK.open("a+") as file:
        told = False
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not told:
                    file.seek(0)
                    say(f"waiting for another run that builds tools (process {file.read().strip() or 'unknown'})")
                    told = True
                time.sleep(POLL_S)
        file.seek(0)
        file.truncate()
        file.write(f"{os.getpid()}\n")
        file.flush()
        for left in paths.SCRATCH.glob("run-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


@contextmanager
def terminated_as_interrupt() -> Iterator[None]:
    """Within this, SIGTERM raises SystemExit(143) in the main thread, so that compilers are ended and files removed.

    A caller's own handler is left alone.
    """
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL

    def leave(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if ours:
        signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
