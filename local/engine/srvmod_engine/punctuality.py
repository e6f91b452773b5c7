"""Whether the simulation keeps its own time, and saying so when it doesn't.

The tokens of a step go out in groups. A group's timing error is how far the time since the same group of the step
before is from what the step model says, or how late the whole step began to go out, whichever is more; every token
of the group counts with it.
"""

import logging
import time
from typing import Final

from srvmod_engine.metrics import EngineMetrics

_log = logging.getLogger(__name__)
GROUP: Final = 16
"""Tokens that go out without looking at the clock."""
TOLERANCE_SECONDS: Final = 0.001
"""A token is on time when its error is at most this."""
LATE_SHARE: Final = 0.05
"""More late tokens than this within a window, and the engine lags: its p95 is beyond the tolerance."""
WINDOW_SECONDS: Final = 5.0


class Punctuality:
    """Watches the steps of one engine and tells metrics and log."""

    def __init__(self, metrics: EngineMetrics) -> None:
        self._metrics = metrics
        self._before: list[float] = []
        self._groups: list[tuple[float, int]] = []
        self._window_began: float | None = None
        self._tokens = 0
        self._late = 0
        self._worst = 0.0

    def pause(self) -> None:
        """There is no work: the next step has none before it."""
        self._before = []

    def group(self, at: float, tokens: int) -> None:
        """The next group of the step goes out now."""
        self._groups.append((at, tokens))

    def step(self, *, planned: float, due: float, begun: float, ended: float) -> bool:
        """Record a step that should have taken `planned` seconds and ended at `due`.

        Its tokens went out from `begun` to `ended`. False when it was late by more than itself: such a delay can't
        be made up for.
        """
        metrics = self._metrics
        lag = max(0.0, begun - due)
        metrics.lag.observe(lag)
        groups, self._groups = self._groups, []
        if groups:
            metrics.hand_out.observe(ended - begun)
        for index, (at, tokens) in enumerate(groups):
            error = lag
            if index < len(self._before):
                error = max(lag, abs(at - self._before[index] - planned))
            metrics.timing_error.observe(error, tokens)
            self._count(at, error, tokens)
        self._before = [at for at, _ in groups]
        if lag <= max(planned, TOLERANCE_SECONDS):
            return True
        metrics.lagging_steps += 1
        self._say(
            f"a step of {planned * 1e3:.1f} ms ended {lag * 1e3:.1f} ms late; latencies are longer than the model's"
        )
        return False

    def _count(self, now: float, error: float, tokens: int) -> None:
        if self._window_began is None:
            self._window_began = now
        self._tokens += tokens
        self._worst = max(self._worst, error)
        if error > TOLERANCE_SECONDS:
            self._late += tokens
        if now - self._window_began < WINDOW_SECONDS:
            return
        share = self._late / self._tokens
        if share > LATE_SHARE:
            self._say(
                f"{share:.0%} of the last {self._tokens} tokens were off by more than "
                f"{TOLERANCE_SECONDS * 1e3:.0f} ms, at worst {self._worst * 1e3:.1f} ms"
            )
        elif self._metrics.lagging:
            self._metrics.lagging_until = 0.0
            _log.info("the simulation keeps its time again")
        self._window_began = now
        self._tokens = self._late = 0
        self._worst = 0.0

    def _say(self, what: str) -> None:
        """Once when it begins; the metrics tell the rest. Two windows later, without traffic, it is forgotten."""
        if not self._metrics.lagging:
            _log.warning("the simulation lags: %s", what)
        self._metrics.lagging_until = time.monotonic() + 2 * WINDOW_SECONDS
