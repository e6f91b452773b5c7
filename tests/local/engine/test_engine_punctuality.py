"""The engine notices when it doesn't keep its own time, says so once, and takes it back."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from srvmod_engine.metrics import EngineMetrics
from srvmod_engine.punctuality import TOLERANCE_SECONDS, WINDOW_SECONDS, Punctuality

from .rig import make_config

STEP = 0.020


class Life:
    """Steps of 20 ms, each with two groups of tokens, the second of which goes out 2 ms after the first."""

    def __init__(self, weights: Path) -> None:
        self.metrics = EngineMetrics(make_config(weights))
        self.punctuality = Punctuality(self.metrics)
        self.due = 100.0

    def steps(self, delays: Iterable[tuple[float, float]]) -> list[bool]:
        """One step for each pair of delays of its groups, in seconds."""
        kept = []
        for first, second in delays:
            self.due += STEP
            self.punctuality.group(self.due + first, 16)
            self.punctuality.group(self.due + 0.002 + second, 16)
            end = self.due + 0.003
            kept.append(self.punctuality.step(planned=STEP, due=self.due, begun=self.due + first, ended=end))
        return kept


WINDOW = int(WINDOW_SECONDS / STEP) + 2


def test_on_time_it_says_nothing(weights: Path, caplog: pytest.LogCaptureFixture) -> None:
    life = Life(weights)
    assert all(life.steps([(0.0, 0.0)] * WINDOW))
    assert not life.metrics.lagging
    assert life.metrics.lagging_steps == 0
    assert "lags" not in caplog.text
    assert life.metrics.timing_error.total == pytest.approx(0, abs=1e-6)


def test_uneven_intervals_are_noticed_though_every_step_begins_on_time(
    weights: Path, caplog: pytest.LogCaptureFixture
) -> None:
    life = Life(weights)
    wobble = [(0.0, 0.0), (0.0, 3 * TOLERANCE_SECONDS)] * (WINDOW // 2 + 1)
    assert all(life.steps(wobble))
    assert life.metrics.lagging == 1
    assert caplog.text.count("the simulation lags") == 1
    assert "50% of the last" in caplog.text
    caplog.set_level("INFO")
    life.steps([(0.0, 0.0)] * 2 * WINDOW)
    assert life.metrics.lagging == 0
    assert "keeps its time again" in caplog.text


def test_a_constant_delay_within_the_step_is_no_error(weights: Path) -> None:
    life = Life(weights)
    life.steps([(0.0, 0.004)] * WINDOW)
    assert life.metrics.lagging == 0


def test_a_step_late_by_more_than_itself_is_said_at_once(weights: Path, caplog: pytest.LogCaptureFixture) -> None:
    life = Life(weights)
    assert life.steps([(0.0, 0.0), (2 * STEP, 2 * STEP)]) == [True, False]
    assert (life.metrics.lagging, life.metrics.lagging_steps) == (1, 1)
    assert "a step of 20.0 ms ended 40.0 ms late" in caplog.text


def test_lagging_is_forgotten_when_there_is_no_more_traffic(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    life = Life(weights)
    now = [50.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    life.steps([(2 * STEP, 2 * STEP)])
    assert life.metrics.lagging
    now[0] += 2 * WINDOW_SECONDS + 1
    assert not life.metrics.lagging


def test_a_few_late_tokens_are_within_the_tolerance(weights: Path) -> None:
    life = Life(weights)
    life.steps([(0.0, 0.0)] * 40 + [(0.002, 0.0)] + [(0.0, 0.0)] * WINDOW)
    assert life.metrics.lagging == 0
    assert life.metrics.timing_error.total > 0


def test_the_first_step_after_a_pause_has_none_before_it(weights: Path) -> None:
    life = Life(weights)
    life.steps([(0.0, 0.0)])
    life.punctuality.pause()
    life.due += 50.0
    life.steps([(0.0, 0.0)])
    assert life.metrics.timing_error.total == pytest.approx(0, abs=1e-6)
