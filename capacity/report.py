"""A plan as plain values, for people and for programs: every figure with its interval, and what binds."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srvmod.capacity.layout import Layout, Slo, Traffic
from srvmod.capacity.memory import memory_budget
from srvmod.capacity.parameters import calibration
from srvmod.capacity.planner import (
    Interval,
    NodeRange,
    Plan,
    first_token_between,
    node_range,
    predict,
    rate_between,
    times_between,
)
from srvmod.capacity.speculation import LOOKED_AT, Drafting, drafted, schedule
from srvmod.capacity.steady import Limit, Prediction, misses
from srvmod.contract import GIB, ModelShape


def plan_as_json(
    planned: Plan, model: ModelShape, usd_per_node_hour: float | None = None, drafting: Drafting | None = None
) -> dict[str, Any]:
    """Everything that a plan says. Latency is null near saturation, money without a price.

    `drafting` is what the stack asks for; without it the plan says what a draft model would do.
    """
    nodes = node_range(planned, model)
    state = planned.prediction
    return {
        "model": model.id,
        "instanceType": planned.layout.instance.name,
        "traffic": {
            "sessions": planned.traffic.sessions,
            "promptTokens": planned.traffic.prompt_tokens,
            "outputTokens": planned.traffic.output_tokens,
            "prefixHitRate": planned.traffic.prefix_hit_rate,
            "tokensPerSecond": planned.traffic.tokens_per_second,
        },
        "slo": {"itlP95Ms": planned.slo.itl_p95, "itlPer": planned.slo.per.value, "ttftMs": planned.slo.ttft},
        "nodes": {"low": nodes.low, "likely": nodes.likely, "high": nodes.high},
        "engines": planned.engines,
        "enginesNeeded": planned.engines_needed,
        "sessionsPerEngine": planned.sessions_per_engine,
        "mostSessionsPerEngine": planned.most_sessions_per_engine,
        "headRoom": round(planned.head_room, 4),
        "binds": planned.binds.value,
        "saturated": state.saturated.value if state.saturated else None,
        "predicted": {
            "itlMeanMs": time(state, state.itl_mean_ms),
            "itlP95Ms": time(state, state.itl_p95_ms),
            "itlGapP95Ms": time(state, state.itl_gap_p95_ms),
            "ttftP50Ms": first_token(state, state.ttft_p50_ms, tail=False),
            "ttftP95Ms": first_token(state, state.ttft_p95_ms, tail=True),
            "tokensPerSecond": _interval(rate_between(planned.tokens_per_second)),
            "kvShare": round(state.kv_share, 4),
            "prefillShare": round(state.prefill_share, 4),
        },
        "memoryGibPerGpu": _memory(planned, model),
        "kvTokensPerEngine": planned.kv_room.tokens,
        "cost": _cost(planned, nodes, usd_per_node_hour),
        "speculation": _speculation(planned, model, drafting),
        "interval": "80 % of measured times of unseen stacks lay within it",
        "calibration": {"points": calibration().fitted_points, "sha256": calibration().data_sha256},
    }


def time(state: Prediction, value: float) -> dict[str, float] | None:
    """A time with its interval; None near saturation, where a little more load has no bound."""
    return None if state.saturated or not math.isfinite(value) else _interval(times_between(value))


def first_token(state: Prediction, value: float, *, tail: bool) -> dict[str, float] | None:
    """A time to first token with its own, wider interval; None near saturation."""
    return None if state.saturated or not math.isfinite(value) else _interval(first_token_between(value, tail=tail))


def _interval(between: Interval) -> dict[str, float]:
    return {"low": round(between.low, 2), "likely": round(between.likely, 2), "high": round(between.high, 2)}


def _memory(planned: Plan, model: ModelShape) -> dict[str, float]:
    budget = memory_budget(model, planned.layout)
    parts = {
        "total": budget.total,
        "reserved": budget.reserved,
        "weights": budget.weights,
        "draft": budget.draft,
        "activations": budget.activations,
        "nonTorch": budget.non_torch,
        "cudaGraphs": budget.cuda_graphs,
        "kvCache": budget.kv_cache,
    }
    return {name: round(size / GIB, 2) for name, size in parts.items()}


def _cost(planned: Plan, nodes: NodeRange, usd: float | None) -> dict[str, Any] | None:
    if usd is None:
        return None
    per_token = planned.usd_per_million_tokens(usd)
    band = calibration().itl
    return {
        "usdPerNodeHour": usd,
        "usdPerHour": {
            "low": round(nodes.low * usd, 2),
            "likely": round(nodes.likely * usd, 2),
            "high": None if nodes.high is None else round(nodes.high * usd, 2),
        },
        "usdPerMillionTokens": {
            "low": round(per_token * band.low, 3),
            "likely": round(per_token, 3),
            "high": round(per_token * band.high, 3),
        },
    }


def _speculation(planned: Plan, model: ModelShape, asked: Drafting | None) -> dict[str, Any]:
    """DEC-SRVMOD-01 for this plan: what drafts would do to it. The plan itself doesn't count on them."""
    drafting = asked or Drafting()
    layout, traffic, sessions = planned.layout, planned.traffic, planned.sessions_per_engine
    found = drafted(model, layout, traffic, sessions, drafting)
    batches = schedule(model, layout, traffic, drafting, most_sequences=max(LOOKED_AT, layout.max_num_seqs))
    return {
        "on": asked is not None,
        "method": drafting.drafter.value,
        "acceptance": drafting.acceptance,
        "batches": [{"first": one.first, "last": one.last, "tokens": one.tokens} for one in batches],
        "paysUpToSessions": max((one.last for one in batches if one.tokens), default=0),
        "atPlan": {
            "tokens": found.tokens,
            "plainMs": round(found.plain_ms, 2),
            "draftedMs": round(found.drafted_ms, 2),
            "speedup": round(found.speedup, 3),
        },
    }


@dataclass(frozen=True)
class SweepPoint:
    """One engine with a number of sessions, and the targets that it misses there."""

    sessions: int
    state: Prediction
    missed: tuple[Limit, ...]


def sweep(traffic: Traffic, model: ModelShape, layout: Layout, slo: Slo, counts: Sequence[int]) -> list[SweepPoint]:
    """What an engine does with each number of sessions."""
    states = [predict(traffic, model, layout, count) for count in counts]
    return [SweepPoint(state.sessions, state, tuple(misses(state, traffic, slo))) for state in states]


def sweep_counts(most: int) -> list[int]:
    """Numbers of sessions up to beyond what an engine carries, in even steps."""
    end = max(16, most * 2)
    step = max(1, round(end / 24))
    return [1, *range(step, end + 1, step)] if step > 1 else list(range(1, end + 1))


def sweep_as_json(points: Sequence[SweepPoint]) -> list[dict[str, Any]]:
    """A sweep as plain values."""
    return [
        {
            "sessionsPerEngine": point.sessions,
            "itlMeanMs": time(point.state, point.state.itl_mean_ms),
            "itlP95Ms": time(point.state, point.state.itl_p95_ms),
            "itlGapP95Ms": time(point.state, point.state.itl_gap_p95_ms),
            "ttftP95Ms": first_token(point.state, point.state.ttft_p95_ms, tail=True),
            "tokensPerSecond": None
            if point.state.saturated
            else _interval(rate_between(point.state.tokens_per_second)),
            "kvShare": round(point.state.kv_share, 4),
            "saturated": point.state.saturated.value if point.state.saturated else None,
            "missed": [limit.value for limit in point.missed],
        }
        for point in points
    ]


def between(value: Mapping[str, float | None] | None, unit: str, digits: int = 1) -> str:
    """An interval for people; why there is none otherwise."""
    if value is None:
        return "not told: near saturation"
    low, likely, high = (
        "none holds" if value[name] is None else f"{value[name]:,.{digits}f}" for name in ("low", "likely", "high")
    )
    return f"{likely}{unit} ({low} to {high})"


def _drafts(found: Mapping[str, Any]) -> str:
    """Speculative decoding in words."""
    state = "on" if found["on"] else "off"
    most, at, taken = found["paysUpToSessions"], found["atPlan"], f"if {found['acceptance']:.0%} of drafts are taken"
    if not most:
        return f"{state}; worth it for no number of sessions, {taken}"
    here = (
        f"{at['speedup']:.2f} times as fast with {at['tokens']} drafted at the plan's"
        if at["tokens"]
        else "not at the plan's"
    )
    return f"{state}; worth it up to {most} sessions per engine, {here}, {taken}; the plan doesn't count on it"


def lines(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """A plan as rows of what and how much."""
    predicted, traffic, slo = found["predicted"], found["traffic"], found["slo"]
    rate = traffic["tokensPerSecond"]
    yield (
        "traffic",
        f"{traffic['sessions']:,} sessions, {traffic['promptTokens']:,} prompt and {traffic['outputTokens']:,} output "
        f"tokens, {traffic['prefixHitRate']:.0%} of prompts cached" + (f", {rate:,.0f} tokens/s" if rate else ""),
    )
    yield "targets", f"ITL p95 per {slo['itlPer']} {slo['itlP95Ms']:g} ms, TTFT {slo['ttftMs']:g} ms"
    yield f"{found['instanceType']} nodes", between(found["nodes"], "", 0)
    yield "engines", f"{found['engines']} run, {found['enginesNeeded']} hold the targets"
    yield "sessions per engine", f"{found['sessionsPerEngine']} of at most {found['mostSessionsPerEngine']}"
    yield "head-room", f"{found['headRoom']:.0%}"
    yield "binds", found["saturated"] or found["binds"]
    yield "ITL mean", between(predicted["itlMeanMs"], " ms")
    yield "ITL p95 per request", between(predicted["itlP95Ms"], " ms")
    yield "ITL p95 of single gaps", between(predicted["itlGapP95Ms"], " ms")
    yield "TTFT median", between(predicted["ttftP50Ms"], " ms", 0)
    yield "TTFT p95", between(predicted["ttftP95Ms"], " ms", 0)
    yield "tokens per second", between(predicted["tokensPerSecond"], "", 0)
    yield "KV cache in use", f"{predicted['kvShare']:.1%} of {found['kvTokensPerEngine']:,} tokens per engine"
    yield "prefill budget in use", f"{predicted['prefillShare']:.1%}"
    yield "draft model", _drafts(found["speculation"])
    cost = found["cost"]
    if cost is None:
        yield "cost", "no price: give --price, or prices.gpuNode in the stack's file"
    else:
        yield "USD per hour (nodes)", between(cost["usdPerHour"], "", 2)
        yield "USD per million tokens (nodes)", between(cost["usdPerMillionTokens"], "", 2)
