"""INV-SRVMOD-02, the engine's own part: nothing makes steps longer, and what they take is measured where it counts."""

from __future__ import annotations

import json
from collections.abc import Iterator

from srvmod.contract import ITL_P95_MS, SCALE_OUT_ITL_MS, Clause
from srvmod.policies.config import Config
from srvmod.policies.facts import Engine, Fact, Known, Unknown, World
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.latency import METRIC, edges_of
from srvmod.policies.rules.subjects import vllm_engines

CLAUSE = Clause.INV_SRVMOD_02
SMOOTH = Maker(
    CLAUSE, "smooth-steps", "each step takes longer than the plan's, so the p95 is missed with fewer sessions"
)
MEASURED = Maker(CLAUSE, "measured", "what isn't measured can't be scaled or alerted on")
BUCKETS = Maker(
    CLAUSE, "buckets", "vLLM's own buckets have no edge at 30 and 38 ms: a quantile between them is a guess"
)

MOST_BATCHED_TOKENS = 4_096
"""Twice the plan's budget of a step."""


def smooth_steps(world: World, config: Config) -> Iterator[Finding]:
    """Nothing makes steps longer: eager mode, weights on the host, debug settings, a huge token budget."""
    del config
    for engine in vllm_engines(world):
        yield from _errors(engine)
        yield from _warnings(engine)


def _errors(engine: Engine) -> Iterator[Finding]:
    line = engine.line
    eager = line.switch("enforce_eager")
    if isinstance(eager, Known) and eager.value:
        yield SMOOTH.error(eager.place, "eager mode: no CUDA graphs", "leave --enforce-eager out")
    level = line.given.get("optimization_level")
    if isinstance(level, Known) and str(level.value) == "0":
        yield SMOOTH.error(level.place, "optimisation level 0: no CUDA graphs", "leave -O0 out")
    graphs = json_field(line.given.get("compilation_config"), "cudagraph_mode")
    if graphs is not None and str(graphs.value).upper() in {"NONE", "0"}:
        yield SMOOTH.error(graphs.place, "cudagraph_mode is NONE: no CUDA graphs", "leave cudagraph_mode out")
    offload = line.number("cpu_offload_gb")
    if isinstance(offload, Known) and offload.value > 0:
        what = f"cpu_offload_gb is {offload.value:g}: weights cross PCIe at every step"
        yield SMOOTH.error(offload.place, what, "leave --cpu-offload-gb out")
    for name in ("CUDA_LAUNCH_BLOCKING", "VLLM_TRACE_FUNCTION"):
        value = engine.env.get(name)
        if isinstance(value, Known) and value.value not in {"", "0", "false"}:
            yield SMOOTH.error(value.place, f"{name}={value.value}", f"leave {name} out")


def _warnings(engine: Engine) -> Iterator[Finding]:
    line = engine.line
    asynchronous = line.switch("async_scheduling")
    if isinstance(asynchronous, Known) and not asynchronous.value:
        yield SMOOTH.warning(asynchronous.place, "async scheduling is off", "leave --no-async-scheduling out")
    budget = line.integer("max_num_batched_tokens")
    if isinstance(budget, Known) and budget.value > MOST_BATCHED_TOKENS:
        what = f"max_num_batched_tokens is {budget.value}: a step full of prompts lasts as long"
        yield SMOOTH.warning(budget.place, what, "--max-num-batched-tokens=2048")
    limit, capture = line.integer("max_num_seqs"), line.integer("max_cudagraph_capture_size")
    rows = limit.value if isinstance(limit, Known) else 0
    sizes = line.given.get("cudagraph_capture_sizes") or json_field(
        line.given.get("compilation_config"), "cudagraph_capture_sizes"
    )
    most = json_field(line.given.get("compilation_config"), "max_cudagraph_capture_size")
    largest = min(2 * rows, 512) if rows else 0
    if isinstance(sizes, Known):
        largest = max((int(text) for one in _listed(sizes.value) if (text := str(one)).isdigit()), default=largest)
    elif isinstance(capture, Known):
        largest = capture.value
    elif most is not None and isinstance(most.value, int):
        largest = most.value
    if rows > largest > 0:
        what = f"batches of more than {largest} sequences leave the CUDA graph (max_num_seqs {rows})"
        place = limit.place if isinstance(limit, Known) else line.place
        yield SMOOTH.warning(place, what, f"--max-cudagraph-capture-size={rows}")
    debug = engine.env.get("VLLM_LOGGING_LEVEL")
    if isinstance(debug, Known) and debug.value.upper() == "DEBUG":
        yield SMOOTH.warning(debug.place, "VLLM_LOGGING_LEVEL=DEBUG", "INFO")


def json_field(given: Fact[object] | None, name: str) -> Known[object] | None:
    """A field of an option whose value is JSON."""
    if not isinstance(given, Known):
        return None
    try:
        content = json.loads(str(given.value))
    except (ValueError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    fields: dict[str, object] = {str(key): value for key, value in content.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return Known(fields[name], given.place, given.text) if name in fields else None


def _listed(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else [value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def measured(world: World, config: Config) -> Iterator[Finding]:
    """The engine exports its metrics."""
    del config
    for engine in vllm_engines(world):
        off = engine.line.given.get("disable_log_stats")
        if isinstance(off, Known) and off.value:
            yield MEASURED.error(off.place, "--disable-log-stats takes the metrics away", "leave it out")


def buckets(world: World, config: Config) -> Iterator[Finding]:
    """The histogram has edges at 30 and 38 ms; queries use only edges that exist."""
    del config
    needed = [ITL_P95_MS.value / 1e3, SCALE_OUT_ITL_MS.value / 1e3]
    used = _edges_in_use(world)
    for engine in vllm_engines(world):
        given = engine.line.given.get("custom_histogram_buckets")
        if isinstance(given, Unknown):
            yield BUCKETS.unknown("custom_histogram_buckets", given)
            continue
        edges = custom_edges(given)
        place = given.place if given is not None else engine.line.place
        missing = [edge for edge in needed if not _has(edges, edge)]
        asked = [edge for edge in used if not _has(edges, edge)]
        fix = '--custom-histogram-buckets {"inter_token_latency": […, 0.03, 0.038, …]}'
        if asked:
            what = f'a rule or scaler asks for le="{asked[0]:g}", which the engine doesn\'t export'
            yield BUCKETS.error(place, what, fix)
        elif missing:
            what = f"no bucket edge at {', '.join(f'{edge * 1e3:g}' for edge in missing)} ms"
            yield BUCKETS.warning(place, what, fix)


def _edges_in_use(world: World) -> list[float]:
    queries = [rule.expression for rule in world.alerts]
    queries += [trigger.query for one in world.scalers for trigger in one.triggers]
    texts = [query.value for query in queries if isinstance(query, Known)]
    return sorted({edge for text in texts if METRIC in text for edge in edges_of(text)})


def custom_edges(given: Known[object] | None) -> list[float]:
    """Edges of the inter-token histogram, in seconds."""
    if given is None:
        return list(DEFAULT_EDGES)
    try:
        content = json.loads(str(given.value))
        return [float(edge) for edge in content.get("inter_token_latency", DEFAULT_EDGES)]
    except (ValueError, TypeError, AttributeError):
        return list(DEFAULT_EDGES)


def _has(edges: list[float], edge: float) -> bool:
    return any(abs(one - edge) < 1e-9 for one in edges)


DEFAULT_EDGES = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
"""vLLM 0.32 and 0.33, in seconds."""

RULES = (smooth_steps, measured, buckets)
