"""Waiting for a moment with less than a millisecond of error.

Event-loop timers round to whole milliseconds, which is as much as the error that the simulation is allowed to have;
a Linux timer descriptor fires with microsecond resolution.
"""

import asyncio
import ctypes
import os
import time
from typing import Protocol

_CLOCK_MONOTONIC = 1
_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_CLOEXEC = os.O_CLOEXEC
_ABSOLUTE = 1


class Clock(Protocol):
    """Seconds that only go forward."""

    def now(self) -> float:
        """Current time, seconds."""
        ...

    async def sleep_until(self, moment: float) -> None:
        """Return at `moment`, or at once (after one turn of the event loop) when it has passed."""
        ...

    def hold_until(self, moment: float) -> None:
        """Return at `moment`, without a turn of the event loop; at once when it has passed."""
        ...


class _Timespec(ctypes.Structure):
    _fields_ = (("sec", ctypes.c_long), ("nsec", ctypes.c_long))


class _Itimerspec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class TimerClock:
    """CLOCK_MONOTONIC with a timer descriptor (Linux). Raises OSError when the kernel refuses one."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.timerfd_create(_CLOCK_MONOTONIC, _TFD_NONBLOCK | _TFD_CLOEXEC)
        if self._fd < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"timerfd_create: {os.strerror(code)}")
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._loop.add_reader(self._fd, self._fired)

    def now(self) -> float:
        """See Clock."""
        return time.monotonic()

    async def sleep_until(self, moment: float) -> None:
        """See Clock."""
        if moment <= time.monotonic():
            await asyncio.sleep(0)
            return
        seconds = int(moment)
        spec = _Itimerspec(_Timespec(0, 0), _Timespec(seconds, max(1, int((moment - seconds) * 1e9))))
        self._waiter = self._loop.create_future()
        if self._libc.timerfd_settime(self._fd, _ABSOLUTE, ctypes.byref(spec), None) < 0:
            code = ctypes.get_errno()
            raise OSError(code, f"timerfd_settime: {os.strerror(code)}")
        try:
            await self._waiter
        finally:
            self._waiter = None

    def hold_until(self, moment: float) -> None:
        """See Clock."""
        left = moment - time.monotonic()
        if left > 0:
            time.sleep(left)

    def _fired(self) -> None:
        try:
            os.read(self._fd, 8)
        except BlockingIOError:
            return  # it was set again meanwhile
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        """Give the descriptor back."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
