"""The agent's loop: verify or fetch, open the node, watch the cache and the engines' deletion cost."""

import logging
import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from weight_cache.cache import Cache
from weight_cache.errors import CacheError, StoppedError
from weight_cache.status import Status
from weight_cache.store import ObjectStore

_log = logging.getLogger("weight_cache")


@dataclass(frozen=True)
class Timing:
    """Pauses, seconds."""

    first_retry: float = 1.0
    longest_retry: float = 60.0
    watch: float = 10.0


class Agent:
    """Brings one revision into the cache and opens the node; `open_node` is None when nodes are left alone.

    `keep_costs` is called again and again once the node is open; None leaves pods alone.
    """

    def __init__(
        self,
        cache: Cache,
        connect: Callable[[], ObjectStore],
        prefix: str,
        *,
        open_node: Callable[[], bool] | None,
        keep_costs: Callable[[], int] | None = None,
        status: Status,
        stop: threading.Event,
        verify_full: bool = False,
        timing: Timing | None = None,
    ) -> None:
        self._cache = cache
        self._connect = connect
        self._prefix = prefix
        self._open_node = open_node
        self._keep_costs = keep_costs
        self._status = status
        self._stop = stop
        self._verify_full = verify_full
        self._timing = timing or Timing()
        self._begun = time.monotonic()

    def run(self, *, once: bool = False) -> None:
        """Work until stopped, or with `once` until the node is open. Failures are logged and tried again."""
        failures = 0
        while not self._stop.is_set():
            try:
                with self._cache.lock():
                    self._attempt()
                    failures = 0
                    if once:
                        return
                    self._watch()
            except StoppedError:
                return
            except CacheError as error:
                failures += 1
                self._failed(error, failures)

    def _attempt(self) -> None:
        status = self._status
        status.attempts += 1
        status.progress.beat()
        status.phase = "verifying"
        found = self._cache.verify(status.progress, full=self._verify_full)
        if found is None:
            status.ready = False
            status.phase = "downloading"
            found = self._cache.fill(self._connect(), self._prefix, status.progress)
        else:
            status.progress.begin(found.size, len(found.files))
            status.progress.add(found.size)
        status.ready = True
        status.seconds_to_ready = time.monotonic() - self._begun
        _log.info(
            "revision %s is ready: %d files, %.2f GiB, %.1f s",
            found.revision,
            len(found.files),
            found.size / 2**30,
            status.seconds_to_ready,
        )
        status.phase = "opening"
        status.opens_node = self._open_node is not None
        if self._open_node is None:
            _log.info("no node was named: taints are left alone")
        else:
            removed = self._open_node()
            status.taint_lifted = True
            _log.info("startup taint removed: pods may come" if removed else "the node has no startup taint (any more)")
        status.error = ""
        status.phase = "ready"

    def _watch(self) -> None:
        """Stay while the revision is in place; come back when someone has removed it."""
        while not self._stop.wait(self._timing.watch):
            self._status.progress.beat()
            self._costs()
            if not self._cache.layout.ready.exists():
                _log.error("%s has vanished: verifying and repairing", self._cache.layout.ready)
                self._status.ready = False
                return

    def _costs(self) -> None:
        """A wrong cost wastes money at the next scale-down; it is no reason to take a good node out of service."""
        if self._keep_costs is None:
            return
        try:
            self._keep_costs()
        except CacheError as error:
            self._status.failures[error.reason] += 1
            _log.error("%s: %s (next in %.0f s)", error.reason, error, self._timing.watch)

    def _failed(self, error: CacheError, failures: int) -> None:
        self._status.failures[error.reason] += 1
        self._status.error = str(error)
        self._status.phase = "waiting"
        ceiling = min(self._timing.longest_retry, self._timing.first_retry * 2 ** min(failures - 1, 16))
        # Jitter keeps a hundred nodes from coming back in the same moment.
        pause = ceiling * random.uniform(0.5, 1.0)
        _log.error("%s: %s (attempt %d, next in %.1f s; the startup taint stays)", error.reason, error, failures, pause)
        self._stop.wait(pause)
