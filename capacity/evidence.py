"""What the capacity model says about claims: verdicts and figures that are computed, not written down.

Everything is for the shape that the specification names: Llama-3-70B, FP8 weights, TP 4 on H100, two engines per node.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from srvmod.capacity import memory_evidence as memory
from srvmod.capacity.allreduce import all_reduce
from srvmod.capacity.layout import Layout, Slo, Traffic
from srvmod.capacity.memory import weight_bytes_per_gpu
from srvmod.capacity.memory_evidence import FP8, MODEL, Evidence, verdict
from srvmod.capacity.planner import NodeRange, node_range, plan, predict, times_between
from srvmod.capacity.speculation import ACCEPTANCE, WORTH, break_even, by_batch, most_sessions
from srvmod.capacity.stacks import Stack
from srvmod.capacity.steady import MOST_PREFILL_SHARE, P95_OVER_MEAN
from srvmod.capacity.steptime import StepModel, step_time
from srvmod.contract import (
    ALL_REDUCE_MS,
    DRAFT_TOKENS_PER_SECOND_PER_SESSION,
    GB,
    ITL_P95_MS,
    JOIN_MS,
    OPTION_B_ITL_MS,
    OPTION_C_ITL_CEILING_MS,
    OPTION_C_ITL_MS,
    OUTPUT_TOKENS_PER_SECOND,
    SCALE_OUT_ITL_MS,
    SESSIONS,
    TTFT_MS,
    Milliseconds,
    Verdict,
)

TRT: Final = Layout(stack=Stack.TENSORRT_LLM)
MIXES: Final = ((128, 1024), (294, 294), (512, 512), (1024, 512), (2048, 256))
"""Prompt and output tokens of the mixes that the specification's load is tried with."""
MIDDLE: Final = (512, 512)
CONTEXT: Final = MIDDLE[0] + MIDDLE[1] / 2
HALF: Final = SESSIONS.value // 2
"""Sessions per engine with all of them on one node."""


def _traffic(mix: tuple[int, int], rate: float | None = None) -> Traffic:
    return Traffic(SESSIONS.value, *mix, tokens_per_second=rate)


def nodes_at(mix: tuple[int, int], mean_ms: float, layout: Layout = FP8) -> NodeRange:
    """Nodes that give 650 sessions of a mix a mean ITL, by the p95 over requests that goes with it."""
    slo = Slo(itl_p95=Milliseconds(mean_ms * P95_OVER_MEAN))
    return node_range(plan(_traffic(mix), MODEL, layout, slo), MODEL)


def _range(nodes: NodeRange) -> str:
    return f"{nodes.likely} ({nodes.low} to {nodes.high if nodes.high is not None else 'none holds'})"


def _mixed(mix: tuple[int, int]) -> str:
    return f"{mix[0]}/{mix[1]}"


def _needed_ms() -> float:
    return SESSIONS.value / OUTPUT_TOKENS_PER_SECOND.value * 1e3


def _itl(sessions: int, layout: Layout = FP8, mix: tuple[int, int] = MIDDLE) -> float:
    return predict(_traffic(mix), MODEL, layout, sessions).itl_mean_ms


def _between(ms: float) -> str:
    found = times_between(ms)
    return f"{ms:.0f} ms ({found.low:.0f} to {found.high:.0f})"


def _one_node() -> Evidence:
    needed = _needed_ms()
    found = {mix: nodes_at(mix, needed) for mix in MIXES}
    one = any(nodes.low <= 1 for nodes in found.values())
    text = ", ".join(f"{_mixed(mix)}: {_range(nodes)}" for mix, nodes in found.items())
    text = f"p5 nodes for 650 sessions at a mean of {needed:.1f} ms, by prompt/output tokens: {text}"
    text += "; one p5 for all of it: " + ("possible for some mixes" if one else "false for every mix, also at its best")
    return Evidence(Verdict.TRUE if found[MIDDLE].likely <= 1 else Verdict.CONDITIONAL, text)


def _output() -> Evidence:
    planned = plan(_traffic(MIDDLE, OUTPUT_TOKENS_PER_SECOND.value), MODEL)
    text = (
        f"at {_mixed(MIDDLE)} tokens {planned.engines} engines on {planned.nodes} nodes, {planned.sessions_per_engine} "
    )
    text += f"sessions each, give {planned.tokens_per_second:,.0f} tokens/s; binds: {planned.binds.value}"
    one = 2 * predict(_traffic(MIDDLE), MODEL, FP8, HALF).tokens_per_second
    text += f"; one node with all sessions gives {one:,.0f}"
    return Evidence(Verdict.TRUE if one >= OUTPUT_TOKENS_PER_SECOND.value else Verdict.CONDITIONAL, text)


def _ttft() -> Evidence:
    planned = plan(_traffic(MIDDLE), MODEL)
    starved = predict(_traffic(MIDDLE), MODEL, replace(FP8, max_num_batched_tokens=512), HALF)
    text = (
        f"p95 {planned.prediction.ttft_p95_ms:.0f} ms on the plan of {_mixed(MIDDLE)}; with a budget of 512 tokens and "
    )
    text += f"{HALF} sessions per engine prompts need {starved.prefill_share:.0%} of the room"
    holds = planned.prediction.ttft_p95_ms <= TTFT_MS.value
    bounded = starved.prefill_share <= MOST_PREFILL_SHARE
    return Evidence(verdict(always=holds and bounded, sometimes=holds), text)


def _itl_p95() -> Evidence:
    limit = Milliseconds(float(ITL_P95_MS.value))
    mosts = {mix: plan(_traffic(mix), MODEL, FP8, Slo(itl_p95=limit)).most_sessions_per_engine for mix in MIXES}
    text = ", ".join(f"{_mixed(mix)}: {most}" for mix, most in mosts.items())
    text = f"most sessions per engine with a p95 of {limit:g} ms over requests: {text}; all 650 on one node are {HALF}"
    return Evidence(verdict(always=min(mosts.values()) >= HALF, sometimes=max(mosts.values()) > 0), text)


def _scale_out() -> Evidence:
    planned, one = plan(_traffic(MIDDLE), MODEL).prediction.itl_mean_ms, _itl(HALF)
    limit = SCALE_OUT_ITL_MS.value
    text = f"{_mixed(MIDDLE)}: {_between(planned)} on the plan, {_between(one)} with {HALF} sessions per engine"
    return Evidence(verdict(always=one < limit, sometimes=planned < limit), text)


def _option(limit: float, layout: Layout) -> Evidence:
    texts: list[str] = []
    best = min(_itl(HALF, layout, mix) for mix in MIXES)
    for mix in (MIXES[0], MIDDLE):
        one, two = _itl(SESSIONS.value, layout, mix), _itl(HALF, layout, mix)
        nodes = _range(nodes_at(mix, limit, layout))
        texts.append(
            f"{_mixed(mix)}: {one:.0f} ms on one engine, {_between(two)} on one node, {limit:g} ms with {nodes} nodes"
        )
    return Evidence(verdict(always=best <= limit, sometimes=False), "; ".join(texts))


def _ceiling() -> Evidence:
    limit = OPTION_C_ITL_CEILING_MS.value
    most = max(count for count in range(1, HALF + 1) if _itl(count) <= limit)
    text = f"mean below {limit:g} ms up to {most} sessions per engine at {_mixed(MIDDLE)}"
    return Evidence(verdict(always=most >= HALF, sometimes=most > 0), text)


def _join() -> Evidence:
    alone, many = _itl(1), _itl(HALF)
    text = f"a step lasts {alone:.0f} ms with one session and {many:.0f} ms with {HALF}: the longest wait is one step"
    return Evidence(Verdict.TRUE if alone <= JOIN_MS.value else Verdict.FALSE, text)


def _reduce() -> Evidence:
    count = 2 * MODEL.layers + 1
    one = 1e3 * all_reduce(HALF * MODEL.hidden, 4, Stack.VLLM)
    limit = ALL_REDUCE_MS.value
    rows = max(r for r in range(1, 200) if 1e3 * count * all_reduce(r * MODEL.hidden, 4, Stack.VLLM) <= limit)
    text = f"one takes {one * 1e3:.0f} us at {HALF} rows, all {count} of a step {one * count:.1f} ms; all of them stay "
    text += f"below {limit} ms up to {rows} rows"
    return Evidence(verdict(always=one * count <= limit, sometimes=one <= limit), text)


def _exceeding() -> Evidence:
    share = predict(_traffic(MIDDLE), MODEL, FP8, HALF).kv_share
    text = (
        f"{HALF} sessions per engine at {_mixed(MIDDLE)} use {share:.0%} of the KV cache; on an engine latency ends at "
    )
    text += f"{plan(_traffic(MIDDLE), MODEL).most_sessions_per_engine} sessions"
    return Evidence(Verdict.CONDITIONAL, text)


def _decode_bound() -> Evidence:
    step = StepModel(MODEL, FP8)
    rows = int(step.weight_seconds / (step.linear_seconds_per_row + step.head_seconds_per_row))
    return Evidence(Verdict.CONDITIONAL, f"reading the weights takes longer than computing up to {rows} rows per step")


def _density() -> Evidence:
    counts = (50, 100, 200, HALF)
    states = [predict(_traffic(MIDDLE), MODEL, FP8, count) for count in counts]
    text = ", ".join(
        f"{state.sessions} sessions {2 * state.tokens_per_second:,.0f} tokens/s per node at {state.itl_mean_ms:.0f} ms"
        for state in states
    )
    return Evidence(Verdict.CONDITIONAL, text)


def _head_of_line() -> Evidence:
    """The longest step that a token budget allows, by budget."""
    texts: list[str] = []
    for budget in (512, 2_048, 8_192):
        layout = replace(FP8, max_num_batched_tokens=budget)
        state = predict(_traffic((8_000, 192)), MODEL, layout, 20)
        gap = _long_step(layout)
        texts.append(f"{gap:.0f} ms with a budget of {budget:,}" + (" (prompts starve)" if state.saturated else ""))
    return Evidence(Verdict.CONDITIONAL, f"longest step beside 20 sessions: {', '.join(texts)}")


def _long_step(layout: Layout) -> float:
    prefill = layout.max_num_batched_tokens - 20
    return 1e3 * step_time(MODEL, layout, decodes=20, prefill=prefill, context=CONTEXT, prompt=8_000).total


def _drafts() -> Evidence:
    lines = [
        f"{found.sessions}: {found.plain_ms:.1f} ms"
        + (f", {found.drafted_ms:.1f} with {found.tokens}" if found.tokens else ", no draft helps")
        for found in by_batch(MODEL, FP8, CONTEXT)
    ]
    plain = most_sessions(MODEL, FP8, CONTEXT, drafting=False)
    drafting = most_sessions(MODEL, FP8, CONTEXT, drafting=True)
    limit = DRAFT_TOKENS_PER_SECOND_PER_SESSION.value
    text = (
        f"decoding only, contexts of {CONTEXT:.0f} tokens, {ACCEPTANCE:.0%} of drafts taken; by sessions per engine: "
    )
    text += (
        f"{'; '.join(lines)}. {limit} tokens/s/session: up to {plain} sessions without drafts, {drafting} with; drafts "
    )
    text += f"are worth it (at least {WORTH - 1:.0%} faster) up to {break_even(MODEL, FP8, CONTEXT)}; "
    text += "engine.speculation switches them on, off by default"
    return Evidence(verdict(always=drafting >= HALF, sometimes=drafting > 0), text)


def _warm_up() -> Evidence:
    size = weight_bytes_per_gpu(MODEL, FP8) * 4
    text = f"{size / GB:.2f} GB are {size / 26.4e9:.1f} s at 26.4 GB/s and {size / 4.3e9:.0f} s at 4.3 GB/s, before "
    return Evidence(Verdict.UNKNOWN, text + "compilation and graph capture")


def _self_check() -> Evidence:
    one = _itl(HALF)
    return Evidence(Verdict.TRUE if one <= ITL_P95_MS.value else Verdict.FALSE, f"{_between(one)} on one node")


EVIDENCE: Final[Mapping[str, Callable[[], Evidence]]] = {
    "sessions": _one_node,
    "output-tokens-per-second": _output,
    "ttft": _ttft,
    "itl-p95": _itl_p95,
    "scale-out-itl": _scale_out,
    "weights": memory.weights,
    "weights-per-gpu": memory.weights_per_gpu,
    "diagram-weights-per-gpu": memory.weights_diagram,
    "cuda-overhead": memory.overhead,
    "kv-cache-per-gpu": memory.kv_cache,
    "concurrent-contexts": memory.contexts,
    "well-exceeding": _exceeding,
    "fragmentation": memory.fragmentation_of_blocks,
    "join": _join,
    "all-reduce": _reduce,
    "option-b-itl": lambda: _option(OPTION_B_ITL_MS.value, TRT),
    "option-c-itl": lambda: _option(OPTION_C_ITL_MS.value, FP8),
    "option-c-itl-ceiling": _ceiling,
    "speculative-speed": _drafts,
    "decode-memory-bound": _decode_bound,
    "density-minimizes-bills": _density,
    "no-head-of-line": _head_of_line,
    "warm-up": _warm_up,
    "self-check-latency": _self_check,
}
"""By claim id; every claim that is judged by the model is here, and some that are judged by arithmetic."""
