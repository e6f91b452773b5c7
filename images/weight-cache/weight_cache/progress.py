"""How far the download is: numbers for /metrics and lines for the log."""

import logging
import threading
import time

_log = logging.getLogger("weight_cache")
_GIB = 2**30


class Progress:
    """Thread-safe counters. A line is logged at most every `interval` seconds."""

    def __init__(self, interval: float = 5.0) -> None:
        self._interval = interval
        self._lock = threading.Lock()
        self.total = 0
        self.done = 0
        self.files = 0
        self.files_done = 0
        self._begun = 0.0
        self._beat = time.monotonic()
        self._logged = 0.0

    def beat(self) -> None:
        """Note that the agent is alive."""
        self._beat = time.monotonic()

    @property
    def silence(self) -> float:
        """Seconds since the agent last did something."""
        return time.monotonic() - self._beat

    def begin(self, total: int, files: int) -> None:
        """A new attempt: `total` bytes in `files` files."""
        with self._lock:
            self.total, self.done, self.files, self.files_done = total, 0, files, 0
            self._begun = self._logged = time.monotonic()

    def add(self, count: int) -> None:
        """`count` more bytes are on disk (negative when some must be fetched again)."""
        with self._lock:
            self.done += count
            now = self._beat = time.monotonic()
            if now - self._logged < self._interval:
                return
            self._logged = now
            rate = max(0, self.done) / max(now - self._begun, 1e-9)
            left = (self.total - self.done) / rate if rate else float("inf")
            _log.info(
                "%.2f of %.2f GiB (%.0f %%), %d of %d files, %.2f GiB/s, about %.0f s to go",
                self.done / _GIB,
                self.total / _GIB,
                100 * self.done / self.total if self.total else 100,
                self.files_done,
                self.files,
                rate / _GIB,
                left,
            )

    def file_done(self) -> None:
        """One more file is verified."""
        with self._lock:
            self.files_done += 1
            self._beat = time.monotonic()
