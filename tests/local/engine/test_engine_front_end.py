"""Waits before a first token: what is held, what isn't, and that nothing else waits with it."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from srvmod_engine.config import EngineConfig
from srvmod_engine.engine import Engine
from srvmod_engine.front_end import FrontEnd, Wait
from srvmod_engine.hardware import first_token_wait, instances
from srvmod_engine.metrics import EngineMetrics
from srvmod_engine.options import read_options
from srvmod_engine.sequence import Group, Sequence, Writer, nowhere
from srvmod_engine.step_model import load_step_model
from srvmod_engine.tokens import Answer

from srvmod.capacity import Stack, calibration
from srvmod.capacity.scores import quantile
from srvmod.capacity.table import committed_text, read_points
from srvmod.local.engine.bench.backtest import measured_point
from srvmod.local.engine.bench.virtual import Mix, Observed, VirtualClock, observe

from .rig import LABELS, make_config, serving

STEP = 0.010
FOR_EVER = 1_000.0
"""Times the calibrated wait: longer than any test."""


class Counter:
    """A sink that counts."""

    def __init__(self) -> None:
        self.tokens = 0
        self.given_up = False

    def token(self, token: int, text: str, finish_reason: str | None) -> None:
        self.tokens += 1

    def events(self, start: int, end: int) -> list[bytes]:
        return []

    def writer(self) -> Writer:
        return nowhere

    def aborted(self) -> None:
        self.given_up = True


def sequence(tokens: int, arrival: float = 0.0, group: Group | None = None) -> Sequence:
    answer = Answer(1, max_tokens=tokens, natural_length=tokens + 1)
    return Sequence([1, 2, 3], answer, Counter(), tokens, arrival, group or Group(1, 1))


def constant(weights: Path, wait: float) -> EngineConfig:
    """Steps of 10 ms, whatever is in them."""
    config = make_config(weights)
    return replace(config, sim=replace(config.sim, step_ms=STEP * 1e3, first_token_wait=wait))


def front_end(wait: Wait | None = None, seed: int = 1) -> FrontEnd:
    found = FrontEnd(wait or Wait(2.0, 0.5), seed)
    found.stepped(STEP)
    return found


def test_nobody_waits_in_front_of_an_idle_engine_or_when_it_is_switched_off() -> None:
    assert not FrontEnd(Wait(2.0, 0.5), 1).hold(sequence(1), 0.0)
    off = FrontEnd(None, 1)
    off.stepped(STEP)
    assert not off.hold(sequence(1), 0.0)
    busy = front_end()
    assert busy.hold(sequence(1), 0.0)
    busy.idle()
    assert not busy.hold(sequence(1), 0.0)


def test_waits_have_the_calibrated_median_and_spread() -> None:
    source, wait = random.Random(3), Wait(1.66, 0.47)
    drawn = [wait.draw(source) for _ in range(4_000)]
    assert quantile(drawn, 0.5) == pytest.approx(1.66, rel=0.04)
    assert quantile(drawn, 0.95) == pytest.approx(1.66 * 2.17, rel=0.05)


def test_the_same_seed_gives_the_same_waits_and_choices_of_a_prompt_stay_together() -> None:
    def entered(seed: int) -> list[float]:
        made = front_end(seed=seed)
        groups = [Group(2, 2) for _ in range(20)]
        for group in groups:
            for _ in range(2):
                made.hold(sequence(1, group=group), 0.0)
        order = [seq.group for seq in made.due(FOR_EVER)]
        assert all(first is second for first, second in zip(order[::2], order[1::2], strict=True))
        times = [group.enters or 0.0 for group in order]
        assert times == sorted(times)
        return [group.enters or 0.0 for group in groups]

    assert entered(1) == entered(1) != entered(2)


def test_what_the_schedule_makes_them_wait_is_taken_off() -> None:
    slow, quick = front_end(), front_end()
    for _ in range(100):
        seen = sequence(1)
        seen.group.enters = 0.0
        slow.scheduled(seen, 50 * STEP)
        quick.scheduled(seen, 0.0)
    assert not slow.hold(sequence(1), 0.0)
    assert quick.hold(sequence(1), 0.0)


def test_a_request_waits_for_the_step_in_progress(weights: Path) -> None:
    """Uniformly between none and all of it: the median first token comes after one and a half steps."""
    seen = observe(constant(weights, 0), Mix(8, 16, 40), answers=12)
    firsts = [first / STEP for first in seen.first_tokens]
    assert 1.0 <= min(firsts) < 1.1
    assert quantile(firsts, 0.5) == pytest.approx(1.5, abs=0.15)
    assert 1.9 < max(firsts) <= 2.0


def test_first_tokens_come_as_the_planners_formula_says(weights: Path) -> None:
    """One step for the prompt, and the calibrated number of them beside it."""
    seen: Observed = observe(constant(weights, 1), Mix(16, 16, 60), answers=12)
    firsts, waiting = [first / STEP for first in seen.first_tokens], calibration().waiting
    assert len(firsts) > 150
    assert quantile(firsts, 0.5) == pytest.approx(1 + waiting.steps_of(Stack.VLLM), rel=0.1)
    assert quantile(firsts, 0.95) == pytest.approx(1 + waiting.quantile(Stack.VLLM, 1.645), rel=0.2)


def test_the_backtests_first_token_is_within_the_calibrated_interval(weights: Path) -> None:
    """vLLM 0.9.2 on 8 H100, TP 2, 294/294 tokens, 78 sessions per engine: 110 ms in the median (MLPerf v5.1)."""
    [point] = [one for one in read_points(committed_text()) if one.id == "krai-H100x8-vllm-interactive"]
    [machine] = [name for name, instance in instances().items() if instance.gpu.name == "H100"]
    found = measured_point(point, weights, machine)
    low, high = found.simulator_ttft_p50_between
    assert low < 109.7 < high
    assert found.planner_ttft_p50 == pytest.approx(found.simulator_ttft_p50, rel=0.1)
    assert found.simulator_itl == pytest.approx(30.5, rel=0.03)


class LateClock(VirtualClock):
    """A machine that wakes 3 ms after it should."""

    async def sleep_until(self, moment: float) -> None:
        await super().sleep_until(moment + 0.003)


async def _started(config: EngineConfig, clock: VirtualClock | None = None) -> tuple[Engine, EngineMetrics, Counter]:
    """An engine at virtual time with one long answer under way."""
    metrics = EngineMetrics(config)
    engine = Engine(config, load_step_model(config), clock or VirtualClock(), metrics)
    engine.start()
    running = sequence(200)
    engine.submit(running)
    sink = running.sink
    assert isinstance(sink, Counter)
    await _until(lambda: sink.tokens > 2)
    return engine, metrics, sink


async def _until(done: Callable[[], bool]) -> None:
    for _ in range(10_000):
        if done():
            return
        await asyncio.sleep(0)
    raise AssertionError("it doesn't come about")


def test_who_is_held_counts_as_unfinished_and_can_be_cancelled(weights: Path) -> None:
    async def ask() -> None:
        engine, metrics, _ = await _started(constant(weights, FOR_EVER))
        held = sequence(5, engine.clock.now())
        engine.submit(held)
        assert engine.unfinished == 2
        assert metrics.gauges["vllm:num_requests_waiting"] == 0
        engine.cancel(held)
        engine.cancel(held)
        assert (engine.unfinished, held.finished, metrics.success["abort"]) == (1, True, 1)
        await engine.shutdown(0)

    asyncio.run(ask())


def test_draining_finishes_who_is_held(weights: Path) -> None:
    """They are let in when nothing else runs, as nobody waits in front of an idle engine."""

    async def ask() -> None:
        engine, metrics, running = await _started(constant(weights, FOR_EVER))
        held = sequence(5, engine.clock.now())
        engine.submit(held)
        await engine.shutdown(20)
        assert (running.tokens, held.generated, metrics.success["length"]) == (200, 5, 2)
        assert metrics.success["abort"] == 0

    asyncio.run(ask())


def test_aborting_gives_up_who_is_held(weights: Path) -> None:
    async def ask() -> None:
        engine, metrics, running = await _started(constant(weights, FOR_EVER))
        held = sequence(5, engine.clock.now())
        engine.submit(held)
        await engine.shutdown(0)
        assert isinstance(held.sink, Counter)
        assert running.given_up
        assert held.sink.given_up
        assert metrics.success["abort"] == 2

    asyncio.run(ask())


def test_moments_of_a_request_are_in_order_on_a_late_machine(weights: Path) -> None:
    async def ask() -> None:
        engine, _, _ = await _started(constant(weights, 1), LateClock())
        asked: list[Sequence] = []
        for _ in range(20):
            await asyncio.sleep(0)
            asked.append(sequence(3, engine.clock.now()))
            engine.submit(asked[-1])
        await engine.shutdown(20)
        assert all(one.arrival <= one.queued <= one.scheduled < one.first_token for one in asked)
        assert any(one.arrival < one.queued for one in asked)

    asyncio.run(ask())


def test_health_and_streams_do_not_wait_with_a_held_request(weights: Path) -> None:
    async def ask() -> None:
        async with serving(constant(weights, FOR_EVER)) as server:
            body = {"prompt": "a b c", "max_tokens": 5_000, "ignore_eos": True, "stream": True}
            streaming, held = await server.client(), await server.client()
            await streaming.send("POST", "/v1/completions", body)
            assert (await streaming.head())[0] == 200
            await streaming.chunk()
            await held.send("POST", "/v1/completions", {**body, "stream": False})
            while (await server.call("GET", "/load")).json() != {"server_load": 2}:
                await streaming.chunk()
            assert (await server.call("GET", "/health")).status == 200
            assert await server.metric(f"vllm:num_requests_running{{{LABELS}}}") == 1
            held.close()
            while (await server.call("GET", "/load")).json() != {"server_load": 1}:
                await streaming.chunk()
            streaming.close()

    asyncio.run(asyncio.wait_for(ask(), 30))


def test_the_option_scales_the_calibrated_wait(weights: Path) -> None:
    options = read_options({"SRVMOD_SIM_FIRST_TOKEN_WAIT": "0.5", "SRVMOD_SIM_SEED": "7"})
    assert (options.first_token_wait, options.seed) == (0.5, 7)
    waiting = calibration().waiting
    assert first_token_wait(make_config(weights, sim=options)) == Wait(
        0.5 * waiting.steps_of(Stack.VLLM), waiting.spread_of(Stack.VLLM)
    )
    assert first_token_wait(make_config(weights, sim=read_options({"SRVMOD_SIM_FIRST_TOKEN_WAIT": "0"}))) is None
