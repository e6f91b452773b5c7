"""ENGINE-VERSION: options, combinations and metric names that the pinned version doesn't know or refuses at start."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise

from srvmod.contract import KV_BLOCK_TOKENS
from srvmod.policies.config import Config
from srvmod.policies.engine_versions import table
from srvmod.policies.facts import CommandLine, Engine, Known, Unknown, Value, World
from srvmod.policies.rules.finding import Finding, Maker, Topic
from srvmod.policies.rules.subjects import vllm_engines

OPTIONS = Maker(Topic.ENGINE_VERSION, "options", "the engine ends at start with a message about its command line")
COMBINATIONS = Maker(Topic.ENGINE_VERSION, "combinations", "the parser takes it, and the engine ends while it starts")
METRICS = Maker(
    Topic.ENGINE_VERSION, "metrics", "a rule on a metric that isn't exported never fires, and a dashboard stays empty"
)

BUCKET_FAMILIES = {
    "request_latency", "time_to_first_token", "inter_token_latency", "iteration_tokens", "request_params_n",
    "request_num_preemptions", "request_tokens", "kv_cache_residency",
}  # fmt: skip
LOAD_FORMATS = {
    "auto", "pt", "safetensors", "instanttensor", "ipc_cache", "npcache", "dummy", "tensorizer", "runai_streamer",
    "runai_streamer_sharded", "sharded_state", "mistral", "modelexpress", "fastsafetensors", "bitsandbytes", "gguf",
}  # fmt: skip
RENAMED = {
    "vllm:gpu_cache_usage_perc": "vllm:kv_cache_usage_perc",
    "vllm:time_per_output_token_seconds": "vllm:inter_token_latency_seconds",
    "vllm:gpu_prefix_cache_queries": "vllm:prefix_cache_queries_total",
    "vllm:gpu_prefix_cache_hits": "vllm:prefix_cache_hits_total",
}


def options(world: World, config: Config) -> Iterator[Finding]:
    """Words that the parser refuses, or takes for something else."""
    del config
    for engine in vllm_engines(world):
        for misuse in engine.line.misuses:
            yield OPTIONS.error(misuse.place, f"{misuse.word}: {misuse.problem}", misuse.allowed)


def combinations(world: World, config: Config) -> Iterator[Finding]:
    """Values that parse and fail at start."""
    for engine in vllm_engines(world):
        yield from _numbers(engine.line)
        yield from _pairs(engine.line)
        yield from _model(engine, config)
        yield from _buckets(engine.line)


def _numbers(line: CommandLine) -> Iterator[Finding]:
    ranges: list[tuple[str, float, float, str]] = [
        ("tensor_parallel_size", 1, 1e6, "at least 1"),
        ("stream_interval", 1, 1e6, "at least 1"),
        ("max_num_seqs", 1, 1e9, "at least 1"),
        ("sse_keep_alive_interval", 0, 1e9, "0 or more seconds"),
        ("shutdown_timeout", 0, 1e9, "0 or more seconds"),
    ]
    for name, least, most, allowed in ranges:
        value = line.number(name)
        if isinstance(value, Known) and not least <= value.value <= most:
            yield COMBINATIONS.error(value.place, f"{name} is {value.value:g}", allowed)
    share = line.number("gpu_memory_utilization")
    if isinstance(share, Known) and not 0 < share.value <= 1:
        yield COMBINATIONS.error(share.place, f"gpu_memory_utilization is {share.value:g}", "more than 0, at most 1")
    block = line.integer("block_size")
    if isinstance(block, Known) and (block.value < 1 or block.value % KV_BLOCK_TOKENS.value):
        what = f"block_size is {block.value}: CUDA's attention kernels take multiples of {KV_BLOCK_TOKENS.value}"
        yield COMBINATIONS.error(block.place, what, str(KV_BLOCK_TOKENS.value))
    load = line.string("load_format")
    if isinstance(load, Known) and load.value not in LOAD_FORMATS:
        yield COMBINATIONS.error(
            load.place, f"load_format is {load.value}", f"one of {', '.join(sorted(LOAD_FORMATS))}"
        )


def _pairs(line: CommandLine) -> Iterator[Finding]:
    budget, limit = line.integer("max_num_batched_tokens"), line.integer("max_num_seqs")
    if isinstance(budget, Known) and isinstance(limit, Known) and budget.value < limit.value:
        what = f"max_num_batched_tokens {budget.value} is below max_num_seqs {limit.value}"
        yield COMBINATIONS.error(budget.place, what, f"at least {limit.value}")
    size, backend = line.integer("tensor_parallel_size"), line.string("distributed_executor_backend")
    if isinstance(backend, Known) and backend.value == "uni" and isinstance(size, Known) and size.value > 1:
        what = f"distributed_executor_backend uni runs one worker, tensor_parallel_size is {size.value}"
        yield COMBINATIONS.error(backend.place, what, "mp")
    chunked, length = line.switch("enable_chunked_prefill"), line.integer("max_model_len")
    off = isinstance(chunked, Known) and not chunked.value
    if off and isinstance(budget, Known) and isinstance(length, Known) and budget.value < length.value:
        what = f"without chunked prefill max_num_batched_tokens {budget.value} is below max_model_len {length.value}"
        yield COMBINATIONS.error(budget.place, what, "--enable-chunked-prefill")
    needs = [
        ("enable_auto_tool_choice", "tool_call_parser", True),
        ("enable_log_outputs", "enable_log_requests", True),
        ("enable_per_request_metrics", "disable_log_stats", False),
    ]
    for name, other, together in needs:
        given, beside = line.given.get(name), line.given.get(other)
        if isinstance(given, Known) and given.value is True and not isinstance(beside, Unknown):
            there = beside is not None and bool(beside.value)
            if there != together:
                word = "needs" if together else "doesn't go with"
                what = f"{name} {word} {other}"
                yield COMBINATIONS.error(given.place, what, what)


def _model(engine: Engine, config: Config) -> Iterator[Finding]:
    line = engine.line
    name = line.model.value if isinstance(line.model, Known) else config.model
    shape = config.shape(name) or (config.shape(config.model) if name.startswith("/") else None)
    if shape is None:
        return
    length = line.integer("max_model_len")
    allowed = engine.env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN")
    if isinstance(length, Known) and length.value > shape.context_tokens and allowed is None:
        what = f"max_model_len {length.value} is longer than the {shape.context_tokens} of {shape.id}"
        yield COMBINATIONS.error(length.place, what, f"at most {shape.context_tokens}")
    size = line.integer("tensor_parallel_size")
    if isinstance(size, Known) and size.value > 0 and shape.heads % size.value:
        what = f"tensor_parallel_size {size.value} doesn't divide the {shape.heads} heads of {shape.id}"
        yield COMBINATIONS.error(size.place, what, "4")


def _buckets(line: CommandLine) -> Iterator[Finding]:
    given = line.given.get("custom_histogram_buckets")
    if not isinstance(given, Known) or not given.value:
        return
    problem = bucket_problem(given.value)
    if problem:
        allowed = f"increasing positive numbers under {', '.join(sorted(BUCKET_FAMILIES))}"
        yield COMBINATIONS.error(given.place, f"custom_histogram_buckets: {problem}", allowed)


def bucket_problem(text: Value) -> str:  # noqa: PLR0911 - one per problem
    """What vLLM would say about histogram buckets; empty where it takes them."""
    try:
        content = json.loads(str(text))
    except (ValueError, RecursionError):
        return "isn't JSON"
    if not isinstance(content, dict):
        return "isn't a mapping"
    families: dict[str, object] = {str(key): value for key, value in content.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for family, edges in families.items():
        if family not in BUCKET_FAMILIES:
            return f"{family} isn't a family of histograms"
        if not isinstance(edges, list) or not edges:
            return f"{family} has no edges"
        numbers = [edge for edge in edges if isinstance(edge, int | float) and not isinstance(edge, bool)]  # pyright: ignore[reportUnknownVariableType]
        if len(numbers) != len(edges) or numbers[0] <= 0:  # pyright: ignore[reportUnknownArgumentType]
            return f"{family} has edges that aren't positive numbers"
        if any(later <= earlier for earlier, later in pairwise(numbers)):
            return f"{family} has edges that don't increase"
    return ""


def metrics(world: World, config: Config) -> Iterator[Finding]:
    """Metric names that the version exports, or that a recording rule of the input makes."""
    known = table(config.engine_version)
    recorded = {rule.record for rule in world.alerts if rule.record}
    for use in world.metrics:
        if use.name in known.exposed or use.name in recorded:
            continue
        base = use.name
        for suffix in ("_bucket", "_sum", "_count", "_total"):
            base = base.removesuffix(suffix)
        near = sorted(name for name in known.exposed if name.startswith(base) and not name.endswith("_created"))
        fix = RENAMED.get(base) or (", ".join(near[:3]) if near else "a metric that the version exports")
        yield METRICS.error(use.place, f"vLLM {known.version} doesn't export {use.name}", fix)


RULES = (options, combinations, metrics)
