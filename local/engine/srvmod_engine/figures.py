"""What one sequence adds to the metrics, with vLLM's definitions (v1/metrics/stats.py). Moments are the engine's."""

from srvmod_engine.metrics import EngineMetrics
from srvmod_engine.sequence import Sequence


def begun(metrics: EngineMetrics, seq: Sequence, now: float) -> None:
    """Its first token came: that is when vLLM counts a prompt."""
    seq.first_token = now
    prompt, cached = len(seq.prompt), seq.cached_prompt
    metrics.histograms["vllm:time_to_first_token_seconds"].observe(now - seq.arrival)
    metrics.counters["vllm:prompt_tokens"] += prompt
    metrics.counters["vllm:prompt_tokens_cached"] += cached
    metrics.prompt_by_source["local_compute"] += prompt - cached
    metrics.prompt_by_source["local_cache_hit"] += cached


def ended(metrics: EngineMetrics, seq: Sequence, now: float) -> None:
    """Its last token came."""
    histograms = metrics.histograms
    metrics.success[seq.answer.stop.finish_reason] += 1
    decode = seq.last_token - seq.first_token
    generated = seq.generated
    for name, value in (
        ("e2e_request_latency_seconds", now - seq.arrival),
        ("request_queue_time_seconds", seq.scheduled - seq.queued),
        ("request_prefill_time_seconds", seq.first_token - seq.scheduled),
        ("request_decode_time_seconds", decode),
        ("request_inference_time_seconds", seq.last_token - seq.scheduled),
        ("request_time_per_output_token_seconds", decode / (generated - 1) if generated > 1 else 0.0),
        ("request_num_preemptions", seq.preemptions),
        ("request_prompt_tokens", len(seq.prompt)),
        ("request_prefill_kv_computed_tokens", len(seq.prompt) - seq.cached_prompt),
        ("request_generation_tokens", generated),
        ("request_params_max_tokens", seq.max_tokens),
    ):
        histograms[f"vllm:{name}"].observe(value)
    group = seq.group
    group.longest = max(group.longest, generated)
    group.open -= 1
    if group.open == 0:
        histograms["vllm:request_max_num_generation_tokens"].observe(group.longest)
        histograms["vllm:request_params_n"].observe(group.n)
