"""Time to first token: the fit of its waits, and what the planner says with them."""

import math
from dataclasses import replace

import pytest

from srvmod.capacity import Layout, Stack, StepModel, Traffic, calibration, plan, predict
from srvmod.capacity.first_token import (
    FirstToken,
    first_token_ms,
    first_token_of,
    fit_waiting,
    own_seconds,
    waited_steps,
)
from srvmod.capacity.fitting import features_of_points
from srvmod.capacity.parameters import Waiting
from srvmod.capacity.points import Kind
from srvmod.capacity.runs import SHARED_PROMPT
from srvmod.capacity.steady import P95_DEVIATIONS
from srvmod.capacity.table import committed_text, read_points
from srvmod.contract import LLAMA_3_70B, SESSIONS, Milliseconds

POINTS = [point for point in read_points(committed_text()) if point.ttft_ms is not None]
ITEMS = [item for item in (first_token_of(one, calibration().parameters) for one in features_of_points(POINTS)) if item]


def test_every_point_with_a_time_to_first_token_is_scored() -> None:
    assert len(ITEMS) == len(POINTS) > 20
    alone = [item for item in ITEMS if item.point.kind is Kind.BATCH_1]
    assert alone
    assert all(item.step == 0 for item in alone)


def test_medians_of_the_points_are_met_within_what_is_claimed() -> None:
    """In the fit; `srvmod bench capacity` tells the errors on points outside it."""
    waiting = calibration().waiting
    off = [abs(item.median(waiting) / (item.point.ttft_ms or 0) - 1) for item in ITEMS]
    assert sum(off) / len(off) < calibration().ttft.mape


def test_the_fit_finds_the_waits_that_made_its_points() -> None:
    def made(steps: float, spread: float) -> FirstToken:
        item = ITEMS[-1]
        median = item.own + steps * item.step
        tail = item.own + steps * math.exp(2.326 * spread) * item.step
        return replace(item, point=replace(item.point, ttft_ms=median, ttft_p99_ms=tail))

    found = fit_waiting([made(1.5, 0.4)] * 5)
    assert found.steps == pytest.approx(1.5)
    assert found.spread == pytest.approx(0.4)
    assert found.quantile(Stack.OTHER, 0) == pytest.approx(1.5)
    with pytest.raises(ValueError, match="time to first token"):
        fit_waiting([])


def test_a_stack_without_points_waits_as_all_do_together() -> None:
    waiting = Waiting(1.2, 0.5, {Stack.VLLM: 2.0}, {Stack.VLLM: 0.3})
    assert waiting.steps_of(Stack.VLLM) == 2.0
    assert waiting.quantile(Stack.SGLANG, 2) == pytest.approx(1.2 * math.exp(1.0))


def test_a_prompt_longer_than_the_budget_takes_whole_steps_and_a_rest() -> None:
    engine = StepModel(LLAMA_3_70B, Layout())

    def own(computed: float) -> float:
        return own_seconds(engine, decodes=50, context=35_000, computed=computed, prompt=computed, beside=0, room=1_000)

    assert own(2_000) > 1.9 * own(1_000) > 0
    assert own(2_500) > own(2_000)


def test_the_planner_names_a_median_below_its_p95_and_both_grow_with_load() -> None:
    states = [predict(Traffic(SESSIONS.value, 512, 512), LLAMA_3_70B, Layout(), count) for count in (10, 50, 150, 250)]
    for state in states:
        assert 0 < state.ttft_p50_ms < state.ttft_p95_ms
    assert [state.ttft_p95_ms for state in states] == sorted(state.ttft_p95_ms for state in states)


def test_the_measured_vllm_point_is_within_the_planners_interval() -> None:
    """vLLM 0.9.2 on H100, TP 2, 294/294 at 78 sessions: 110 ms in the median, 200 ms at p99 (MLPerf v5.1)."""
    layout = Layout(tensor_parallel_size=2, max_num_batched_tokens=8_192)
    state = predict(Traffic(78, 294, 294), LLAMA_3_70B, layout, 78)
    band = calibration().ttft_p99
    assert band.low * state.ttft_p50_ms < 110 < band.high * state.ttft_p50_ms
    assert state.ttft_p95_ms < 200.5


def test_a_target_on_the_first_token_binds_long_prompts() -> None:
    from srvmod.capacity import Slo

    slack = plan(Traffic(100, 2_048, 256), LLAMA_3_70B)
    tight = plan(Traffic(100, 2_048, 256), LLAMA_3_70B, slo=Slo(ttft=Milliseconds(slack.prediction.ttft_p95_ms * 0.9)))
    assert tight.engines_needed > slack.engines_needed


def test_the_planner_says_what_the_fit_says_of_the_same_engine() -> None:
    """The error bands are of the fit's formula, so the planner's must be the same one."""
    [item] = [item for item in ITEMS if item.point.id == "krai-H100x8-vllm-interactive"]
    point, waiting = item.point, calibration().waiting
    count = round(point.concurrency)
    layout = replace(point.layout, max_num_batched_tokens=8_192)
    traffic = Traffic(count, round(point.prompt_tokens), round(point.output_tokens), prefix_hit_rate=SHARED_PROMPT)
    state = predict(traffic, point.model, layout, count)
    assert state.ttft_p50_ms == pytest.approx(item.median(waiting), rel=0.01)
    tail = first_token_ms(item.own, item.step, waiting, point.stack, P95_DEVIATIONS)
    assert state.ttft_p95_ms == pytest.approx(tail, rel=0.01)
    assert waited_steps(item.median(waiting), item.own, item.step) == pytest.approx(waiting.steps_of(point.stack))
