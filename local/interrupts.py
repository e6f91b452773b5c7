"""Ctrl-C, SIGTERM and a closed terminal: all end a command in the same orderly way."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(KeyboardInterrupt):
    """A signal asked the command to end. `exit_code` is what shells expect of it (130 for Ctrl-C)."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = 128 + number


@contextlib.contextmanager
def interruptible() -> Iterator[None]:
    """Within this, each of `ENDING` raises Interrupted in the main thread."""

    def leave(number: int, _frame: FrameType | None) -> None:
        raise Interrupted(number)

    with _handlers(leave):
        yield


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """A short piece of work that must not be cut in the middle: signals take effect after it."""
    came: list[int] = []
    with _handlers(lambda number, _frame: came.append(number)):
        yield
    if came:
        raise Interrupted(came[0])


@contextlib.contextmanager
def _handlers(handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in ENDING}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)
