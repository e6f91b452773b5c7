"""Measured points: the committed ones, what a file of others is scored by, and the fit."""

import dataclasses
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srvmod.capacity import Stack, calibration, stack_of
from srvmod.capacity.bench import bench_points, beyond_kv_cache
from srvmod.capacity.calibrate import digest
from srvmod.capacity.fitting import features_of_points, fit, predicted, seconds, solve
from srvmod.capacity.parameters import StepParameters
from srvmod.capacity.points import Kind
from srvmod.capacity.runs import limits_of, poisson, run_of
from srvmod.capacity.table import committed_text, read_points
from srvmod.contract import LLAMA_2_70B, LLAMA_3_1_70B

HEADER = "id,kind,engine,version,gpu,tp,dp,w,kv,isl,osl,out_tok_s,itl_ms,n_req,max_b,url\n"
GOOD = "a,online,vllm,0.9.2,H100,4,1,1,1,512,512,5000,30,,,https://example.com\n"
KNOWN = read_points(committed_text())


def test_committed_points() -> None:
    assert len(KNOWN) == 101
    assert {point.gpu for point in KNOWN} == {"H100", "H200"}
    assert all(point.url.startswith("https://") for point in KNOWN)
    assert {point.model.id for point in KNOWN} == {LLAMA_2_70B.id, LLAMA_3_1_70B.id}


def test_the_committed_calibration_is_of_the_committed_points() -> None:
    assert calibration().data_sha256 == digest(committed_text())
    assert calibration().fitted_points == len(KNOWN)


def test_errors_on_unseen_points_are_told_and_reach_what_is_claimed() -> None:
    """docs/capacity.md and the README say these; `srvmod bench capacity` measures them anew."""
    errors = calibration()
    assert errors.throughput.mape < 0.08
    assert errors.itl.mape < 0.09
    assert errors.itl.low < 1 < errors.itl.high


def test_stacks() -> None:
    assert stack_of("vLLM", "0.9.2") is Stack.VLLM
    assert stack_of("vllm", "v0.6.0") is Stack.VLLM_0_6
    assert stack_of("sglang", "") is Stack.SGLANG_0_3
    assert stack_of("something-new", "1") is Stack.OTHER


def test_an_unknown_stack_is_scored_by_the_mean_of_the_others() -> None:
    found = bench_points(read_points(HEADER + GOOD.replace("vllm", "new")), KNOWN)
    assert found.figures["scores"]["itl"]["points"] == 1
    assert found.figures["scores"]["throughput"] is None


def test_points_of_the_fit_are_taken_out_before_they_are_scored() -> None:
    """Otherwise a file of known points would be scored by a model that had learned them."""
    worst = next(point for point in KNOWN if point.id == "tune-fp8 baseline")
    known = [point for point in KNOWN if not point.kind.is_throughput or point.tensor_parallel_size == 4]
    found = bench_points([worst], known)
    assert found.figures["takenOutOfTheFit"] == [worst.id]
    assert found.figures["fittedPoints"] == len(known) - 1
    [prediction] = found.figures["predictions"]
    assert prediction["measured"] == worst.measured
    json.dumps(found.as_json())


@settings(max_examples=15, deadline=None)
@given(st.sampled_from([point for point in KNOWN if point.kind is Kind.THROUGHPUT]))
def test_a_played_run_makes_every_token_once(point: object) -> None:
    run = run_of(point)  # type: ignore[arg-type]
    requests = run.point.requests or 0
    decoded = sum(step.count * step.work.decodes for step in run.steps)
    assert decoded == pytest.approx(requests * (run.point.output_tokens - 1))
    assert sum(step.count * step.work.prompts for step in run.steps) == pytest.approx(requests)
    assert sum(step.count * step.work.prefill for step in run.steps) == pytest.approx(
        requests * run.point.prompt_tokens
    )
    most = limits_of(run.point)
    assert max(step.work.decodes for step in run.steps) <= most.sequences
    assert max(step.work.decodes + step.work.prefill for step in run.steps) <= most.tokens


@given(st.floats(0, 200))
def test_shares_of_arrivals_add_up(rate: float) -> None:
    shares = list(poisson(rate))
    assert sum(share for _, share in shares) == pytest.approx(1, abs=1e-4)
    assert sum(count * share for count, share in shares) == pytest.approx(rate, abs=0.05)


def test_slopes_are_the_derivatives() -> None:
    """The fit's own derivatives against differences."""
    [item] = features_of_points([next(point for point in KNOWN if point.id == "trt17-H100-tp4-500-2000")])
    start = StepParameters()
    time, slopes = seconds(item, start)
    for name in (
        "weight_read",
        "fp8",
        "overlap",
        "kv_read",
        "prefill_attention",
        "all_reduce",
        "host_ms",
        "host_growth",
    ):
        moved = StepParameters(**{name: getattr(start, name) * math.exp(1e-5)})
        assert (seconds(item, moved)[0] - time) / 1e-5 == pytest.approx(slopes[name], rel=1e-2, abs=1e-6)


def test_a_fit_finds_the_factors_that_made_its_points() -> None:
    """Points made by the model itself, with another host time and another KV rate, are explained again."""
    points = [point for point in KNOWN if point.stack is Stack.TENSORRT_LLM and point.kind is Kind.THROUGHPUT][::6]
    truth = StepParameters(host_ms=4.0, kv_read=0.66)
    made = [
        dataclasses.replace(item, run=dataclasses.replace(item.run, point=point))
        for item in features_of_points(points)
        for point in [dataclasses.replace(item.run.point, tokens_per_second=predicted(item, truth))]
    ]
    fitted = fit(made).parameters
    assert max(abs(predicted(item, fitted) / item.run.point.measured - 1) for item in made) < 0.02


def test_solve() -> None:
    assert solve([[0.0, 2.0], [3.0, 1.0]], [4.0, 5.0]) == pytest.approx([1.0, 2.0])


def test_points_that_no_kv_cache_holds_are_named() -> None:
    """567 sequences of 441 tokens in bf16 are 41 GB per GPU at TP 2; beside 36 GB of weights there are 36 GB."""
    named = {found["id"]: found for found in beyond_kv_cache(KNOWN)}
    assert set(named) == {"krai-H100x8-vllm-server", "krai-H200x8-sglang-server"}
    assert named["krai-H100x8-vllm-server"] == {
        "id": "krai-H100x8-vllm-server",
        "sequences": 567,
        "kvShare": pytest.approx(1.129, abs=0.002),
    }
    assert bench_points(KNOWN[:2], KNOWN).figures["beyondKvCache"] == []
