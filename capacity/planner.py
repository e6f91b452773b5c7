"""From a traffic mix to engines and nodes: how many sessions one engine carries within the latency targets."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from srvmod.capacity.layout import CapacityError, Layout, Slo, Traffic
from srvmod.capacity.memory import KvRoom, kv_room
from srvmod.capacity.steptime import step_time
from srvmod.contract import Milliseconds, ModelShape, Seconds, to_milliseconds

P95 = 0.95
P95_OVER_MEAN = 1.10
"""p95 over mean of a request's mean time per token: 33.7 / 30.5 ms, vLLM 0.9.2 on 8 H100 (MLPerf v5.1). Single
gaps are spread wider, because some steps carry more prefill than others."""
HOST_TTFT_MS = 15.0
"""HTTP, tokenizing and scheduling before the first step of a request, as assumed in the fit."""
MOST_KV_SHARE = 0.90
"""KV cache in use on average, beyond which bursts preempt sequences."""
MOST_PREFILL_SHARE = 0.80
"""Share of the step's room for prefill that arrivals may fill; beyond it a queue of prompts builds up."""


class Limit(StrEnum):
    """What keeps an engine from carrying more sessions."""

    ITL = "inter-token latency"
    TTFT = "time to first token"
    THROUGHPUT = "tokens per second"
    KV_CACHE = "KV cache"
    PREFILL = "prefill budget"
    SESSIONS = "no limit below all sessions on one engine"


@dataclass(frozen=True)
class Prediction:
    """One engine in steady state with a number of decoding sessions. Times in ms, rates in tokens/s."""

    sessions: int
    itl_mean_ms: Milliseconds
    itl_p95_ms: Milliseconds
    ttft_p95_ms: Milliseconds
    tokens_per_second: float
    kv_share: float
    """KV cache in use on average, of all that fits; more than 1 can't be."""
    prefill_share: float
    """Prompt tokens that arrive per step, of those that the token budget leaves room for."""


@dataclass(frozen=True)
class Plan:
    """A fleet for a traffic mix."""

    traffic: Traffic
    slo: Slo
    layout: Layout
    engines_needed: int
    """Fewest engines that hold the targets."""
    engines: int
    """Engines that run: whole nodes, since a node is paid for whole."""
    nodes: int
    sessions_per_engine: int
    most_sessions_per_engine: int
    """Sessions at which the first limit is reached."""
    binds: Limit
    prediction: Prediction
    """Of one engine with `sessions_per_engine`."""
    kv_room: KvRoom

    @property
    def tokens_per_second(self) -> float:
        """Predicted rate of the whole fleet."""
        return self.traffic.sessions / self.prediction.itl_mean_ms * 1e3


def predict(traffic: Traffic, model: ModelShape, layout: Layout, sessions: int) -> Prediction:
    """Steady state of one engine that decodes `sessions` streams of the mix.

    `ttft_p95_ms` and `itl_p95_ms` are infinite where prompts arrive faster than the token budget lets them in.
    """
    prefill = sessions * traffic.prefill_per_output_token
    room = max(0.0, layout.max_num_batched_tokens - sessions)
    prefill_share = prefill / room if room else math.inf
    step = _step(traffic, model, layout, decodes=sessions, prefill=prefill)
    kv_tokens = sessions * _whole_blocks(traffic.mean_context, layout.block_tokens)
    starved = prefill_share >= 1
    mean = to_milliseconds(step)
    return Prediction(
        sessions=sessions,
        itl_mean_ms=mean,
        itl_p95_ms=Milliseconds(math.inf if starved else mean * P95_OVER_MEAN),
        ttft_p95_ms=_ttft_p95(traffic, model, layout, sessions, prefill_share),
        tokens_per_second=sessions / step,
        kv_share=kv_tokens / kv_room(model, layout).tokens,
        prefill_share=prefill_share,
    )


def _step(traffic: Traffic, model: ModelShape, layout: Layout, decodes: float, prefill: float) -> Seconds:
    return step_time(
        model,
        layout,
        decodes=decodes,
        prefill=prefill,
        context=traffic.mean_context,
        prompt=traffic.prompt_tokens,
    ).total


def _whole_blocks(tokens: float, block_tokens: int) -> float:
    """Tokens of allotted blocks for a sequence: on average half of the last block is empty."""
    return tokens + (block_tokens - 1) / 2


def _ttft_p95(traffic: Traffic, model: ModelShape, layout: Layout, sessions: int, prefill_share: float) -> Milliseconds:
    """A request waits for the step in progress, then for the steps that compute its prompt.

    The step in progress carries another prompt in more than one of twenty cases, or it decodes only. Waiting
    for prompts ahead grows as in any queue that fills up.
    """
    if prefill_share >= 1:
        return Milliseconds(math.inf)
    room = layout.max_num_batched_tokens - sessions
    prompt = max(1.0, traffic.prompt_tokens * (1 - traffic.prefix_hit_rate))
    whole, rest = divmod(prompt, room)
    own = whole * _step(traffic, model, layout, decodes=sessions, prefill=room)
    if rest:
        own += _step(traffic, model, layout, decodes=sessions, prefill=rest)
    steps_with_prompts = sessions / traffic.output_tokens * math.ceil(prompt / room)
    ahead = min(prompt, room) if steps_with_prompts > 1 - P95 else 0
    waiting = _step(traffic, model, layout, decodes=sessions, prefill=ahead)
    return Milliseconds(HOST_TTFT_MS + to_milliseconds(Seconds((waiting + own) / (1 - prefill_share))))


def misses(prediction: Prediction, traffic: Traffic, slo: Slo) -> Iterator[Limit]:
    """The limits that an engine in this state is beyond; none when it holds the targets."""
    if prediction.prefill_share > MOST_PREFILL_SHARE:
        yield Limit.PREFILL
    if prediction.kv_share > MOST_KV_SHARE:
        yield Limit.KV_CACHE
    if prediction.itl_p95_ms > slo.itl_p95:
        yield Limit.ITL
    if traffic.tokens_per_second and prediction.itl_mean_ms > traffic.sessions / traffic.tokens_per_second * 1e3:
        yield Limit.THROUGHPUT
    if prediction.ttft_p95_ms > slo.ttft:
        yield Limit.TTFT


def plan(traffic: Traffic, model: ModelShape, layout: Layout | None = None, slo: Slo | None = None) -> Plan:
    """Fewest engines, on whole nodes, that hold the targets for the mix.

    Raises CapacityError when no number of engines does, or when the mix doesn't fit the model.
    """
    layout = layout or Layout()
    slo = slo or Slo()
    layout.check_model(model)
    length = traffic.prompt_tokens + traffic.output_tokens
    if length > model.context_tokens:
        raise CapacityError(
            "prompt_tokens",
            traffic.prompt_tokens,
            f"with {traffic.output_tokens} output tokens is longer than the context of {model.id}",
            f"prompt and output together at most {model.context_tokens} tokens",
        )
    most, binds = _most_sessions(traffic, model, layout, slo)
    needed = math.ceil(traffic.sessions / most)
    nodes = math.ceil(needed / layout.engines_per_node)
    engines = nodes * layout.engines_per_node
    share = math.ceil(traffic.sessions / engines)
    return Plan(
        traffic=traffic,
        slo=slo,
        layout=layout,
        engines_needed=needed,
        engines=engines,
        nodes=nodes,
        sessions_per_engine=share,
        most_sessions_per_engine=most,
        binds=binds,
        prediction=predict(traffic, model, layout, share),
        kv_room=kv_room(model, layout),
    )


def _most_sessions(traffic: Traffic, model: ModelShape, layout: Layout, slo: Slo) -> tuple[int, Limit]:
    """Sessions that one engine carries, and the limit that one more would pass. Every limit only tightens."""

    def missed(sessions: int) -> tuple[Limit, ...]:
        return tuple(misses(predict(traffic, model, layout, sessions), traffic, slo))

    first = missed(1)
    if first:
        raise _impossible(first[0], predict(traffic, model, layout, 1), traffic, slo)
    low, high = 1, traffic.sessions + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if missed(middle) else (middle, high)
    if low == traffic.sessions:
        return low, Limit.SESSIONS
    return low, missed(low + 1)[0]


def _impossible(limit: Limit, alone: Prediction, traffic: Traffic, slo: Slo) -> CapacityError:
    """The error for a target that one session alone on an engine already misses."""
    if limit is Limit.ITL:
        floor = alone.itl_p95_ms
        problem = f"no number of engines reaches it: one session alone on an engine has {floor:.1f} ms"
        return CapacityError("itl_p95", slo.itl_p95, problem, f"at least {floor:.1f} ms")
    if limit is Limit.TTFT:
        floor = alone.ttft_p95_ms
        problem = f"no number of engines reaches it: one session alone on an engine has {floor:.0f} ms"
        return CapacityError("ttft", slo.ttft, problem, f"at least {floor:.0f} ms")
    if limit is Limit.THROUGHPUT:
        most = traffic.sessions / alone.itl_mean_ms * 1e3
        problem = f"{traffic.sessions} sessions can't get it: one alone on an engine gets a token every "
        problem += f"{alone.itl_mean_ms:.1f} ms"
        rate = traffic.tokens_per_second
        return CapacityError("tokens_per_second", rate, problem, f"at most {most:,.0f} for these sessions")
    if limit is Limit.PREFILL:
        problem = f"{traffic.output_tokens} output tokens per prompt leave too few steps to compute the prompt"
        return CapacityError(
            "prompt_tokens", traffic.prompt_tokens, problem, "shorter prompts, or a larger token budget"
        )
    problem = "one session alone doesn't fit in the KV cache"
    return CapacityError("prompt_tokens", traffic.prompt_tokens, problem, "shorter contexts")
