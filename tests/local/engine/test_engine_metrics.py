"""/metrics has vLLM's names, labels and buckets, and its figures are true."""

import asyncio
import time
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from srvmod_engine.buckets import one_two_five
from srvmod_engine.metrics import Histogram

from .rig import LABELS, make_config, serving, slower

HISTOGRAMS = [
    "inter_token_latency_seconds",
    "request_time_per_output_token_seconds",
    "time_to_first_token_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_inference_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "iteration_tokens_total",
    "request_prompt_tokens",
    "request_generation_tokens",
    "request_max_num_generation_tokens",
    "request_params_n",
    "request_params_max_tokens",
    "request_num_preemptions",
    "request_prefill_kv_computed_tokens",
]
GAUGES = [
    "num_requests_running",
    "num_requests_waiting",
    "num_requests_waiting_by_reason",
    "kv_cache_usage_perc",
    "engine_sleep_state",
    "cache_config_info",
]
COUNTERS = [
    "prompt_tokens",
    "prompt_tokens_by_source",
    "prompt_tokens_cached",
    "prompt_tokens_cached_by_source",
    "generation_tokens",
    "request_success",
    "num_preemptions",
    "prefix_cache_queries",
    "prefix_cache_hits",
    "external_prefix_cache_queries",
    "external_prefix_cache_hits",
    "mm_cache_queries",
    "mm_cache_hits",
    "admission_rejections",
    "estimated_flops_per_gpu",
    "estimated_read_bytes_per_gpu",
    "estimated_write_bytes_per_gpu",
]
"""Names seen on a live server of that version, without the conditional ones."""


def _metrics(weights: Path, *flags: str, tokens: int = 6) -> str:
    async def ask() -> str:
        async with serving(slower(make_config(weights, *flags), 5)) as server:
            body = {"prompt": "a b c d", "max_tokens": tokens, "ignore_eos": True}
            assert (await server.post("/v1/completions", body)).status == 200
            reply = await server.call("GET", "/metrics")
            assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
            return reply.body.decode()

    return asyncio.run(ask())


def test_every_name_is_there_with_its_type_and_no_old_one(weights: Path) -> None:
    text = _metrics(weights)
    kinds = dict(line.split()[2:4] for line in text.splitlines() if line.startswith("# TYPE"))
    for name in HISTOGRAMS:
        assert kinds[f"vllm:{name}"] == "histogram"
        assert f"vllm:{name}_created" in kinds
    for name in GAUGES:
        assert kinds[f"vllm:{name}"] == "gauge"
    for name in COUNTERS:
        assert kinds[f"vllm:{name}_total"] == "counter"
    for old in ("gpu_cache_usage_perc", "time_per_output_token_seconds ", "num_requests_swapped"):
        assert f"vllm:{old}" not in text
    known = {f"vllm:{name}" for name in [*HISTOGRAMS, *GAUGES, *(f"{name}_total" for name in COUNTERS)]}
    ours = {name for name in kinds if name.startswith("vllm:") and not name.endswith("_created")}
    assert ours == known
    assert kinds["srvmod_sim_info"] == kinds["srvmod_sim_lagging"] == "gauge"
    assert kinds["srvmod_sim_timing_error_seconds"] == "histogram"
    assert kinds["process_resident_memory_bytes"] == "gauge"
    assert [*text_string_to_metric_families(text)]


def test_figures_of_one_request(weights: Path) -> None:
    samples = {
        (sample.name, sample.labels.get("source") or sample.labels.get("finished_reason")): sample.value
        for family in text_string_to_metric_families(_metrics(weights))
        for sample in family.samples
    }
    assert samples["vllm:inter_token_latency_seconds_count", None] == 5
    # 5 intervals of 5 ms: shorter in all when the first token was late by less than a step, longer on a busy machine.
    assert 0.0199 < samples["vllm:inter_token_latency_seconds_sum", None] < 2
    assert samples["vllm:time_to_first_token_seconds_count", None] == 1
    assert samples["vllm:generation_tokens_total", None] == 6
    assert samples["vllm:prompt_tokens_total", None] == 5
    assert samples["vllm:prompt_tokens_by_source_total", "local_compute"] == 5
    assert samples["vllm:request_success_total", "length"] == 1
    assert samples["vllm:iteration_tokens_total_count", None] == 6
    assert samples["vllm:iteration_tokens_total_sum", None] == 11
    assert samples["vllm:request_params_n_sum", None] == 1
    assert samples["http_requests_total", None] == 1
    assert samples["vllm:num_requests_running", None] == 0


def test_waiting_is_counted_as_waiting(weights: Path) -> None:
    async def ask() -> None:
        config = slower(make_config(weights, "--max-num-seqs=1"), 10)
        # What the front end takes is in the whole only, so it takes nothing here.
        async with serving(replace(config, sim=replace(config.sim, first_token_wait=0))) as server:
            body = {"prompt": "a b c d", "max_tokens": 30, "ignore_eos": True}
            both = [asyncio.create_task(server.post("/v1/completions", body)) for _ in range(2)]
            end = time.monotonic() + 20
            while await server.metric(f"vllm:num_requests_waiting{{{LABELS}}}") != 1:
                assert time.monotonic() < end
            assert await server.metric(f"vllm:num_requests_running{{{LABELS}}}") == 1
            capacity = LABELS + ',reason="capacity"'
            assert await server.metric(f"vllm:num_requests_waiting_by_reason{{{capacity}}}") == 1
            blocks = 1 / (server.config.num_blocks - 1)
            usage = await server.metric(f"vllm:kv_cache_usage_perc{{{LABELS}}}")
            assert usage in (pytest.approx(blocks), pytest.approx(2 * blocks), pytest.approx(3 * blocks))
            await asyncio.gather(*both)
            queued = await server.metric(f"vllm:request_queue_time_seconds_sum{{{LABELS}}}")
            prefill = await server.metric(f"vllm:request_prefill_time_seconds_sum{{{LABELS}}}")
            decode = await server.metric(f"vllm:request_decode_time_seconds_sum{{{LABELS}}}")
            whole = await server.metric(f"vllm:e2e_request_latency_seconds_sum{{{LABELS}}}")
            # The second waits for what is left of the first one's 30 steps of 10 ms; each decodes for 29 steps.
            assert queued > 0.05
            assert decode > 0.5
            assert queued + prefill + decode == pytest.approx(whole, abs=0.05)

    asyncio.run(ask())


def test_buckets_are_vllms_and_can_be_replaced(weights: Path) -> None:
    def bounds(text: str, name: str) -> list[str]:
        return [
            line.partition('le="')[2].partition('"')[0]
            for line in text.splitlines()
            if line.startswith(f"vllm:{name}_bucket")
        ]

    text = _metrics(weights)
    assert bounds(text, "inter_token_latency_seconds")[:4] == ["0.01", "0.025", "0.05", "0.075"]
    assert bounds(text, "request_prompt_tokens")[-3:] == ["2000.0", "5000.0", "+Inf"]
    custom = '{"inter_token_latency": [0.02, 0.03, 0.038], "time_to_first_token": [0.35, 1]}'
    text = _metrics(weights, "--custom-histogram-buckets", custom)
    for name in ("inter_token_latency_seconds", "request_time_per_output_token_seconds"):
        assert bounds(text, name) == ["0.02", "0.03", "0.038", "+Inf"]
    assert bounds(text, "time_to_first_token_seconds") == ["0.35", "1.0", "+Inf"]


def test_without_log_stats_the_engines_figures_are_gone(weights: Path) -> None:
    text = _metrics(weights, "--disable-log-stats")
    assert "vllm:" not in text
    assert "srvmod_sim_info" in text


def test_an_engine_that_can_not_keep_up_says_so(weights: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> float:
        async with serving(slower(make_config(weights), 0.001)) as server:
            body = {"prompt": "a", "max_tokens": 500, "ignore_eos": True, "n": 60}
            await server.post("/v1/completions", body)
            return await server.metric("srvmod_sim_lagging_steps_total")

    assert asyncio.run(ask()) > 0
    assert "the simulation lags" in caplog.text


def test_an_engine_whose_loop_died_is_unhealthy(weights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from srvmod_engine.step_model import LinearStepModel

    def fail(*_: object) -> float:
        raise RuntimeError("made by the test")

    async def ask() -> None:
        async with serving(make_config(weights)) as server:
            monkeypatch.setattr(LinearStepModel, "seconds", fail)
            reply = await server.post("/v1/completions", {"prompt": "a", "max_tokens": 5})
            assert reply.json()["choices"][0]["finish_reason"] == "abort"
            assert (await server.call("GET", "/health")).status == 503

    asyncio.run(ask())


def test_histograms_put_a_bound_into_its_own_bucket() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 2.0, 3.0):
        histogram.observe(value, 2)
    assert histogram.counts == [4, 4, 2]
    assert histogram.total == 16


def test_token_buckets_follow_the_context_length() -> None:
    assert one_two_five(100) == (1, 2, 5, 10, 20, 50, 100)
    assert one_two_five(99)[-1] == 50
