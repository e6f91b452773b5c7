"""One engine in steady state with a number of decoding sessions: its steps, and what a client sees of them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from srvmod.capacity.first_token import first_token_ms, own_seconds
from srvmod.capacity.layout import Layout, Per, Slo, Traffic
from srvmod.capacity.memory import KvRoom
from srvmod.capacity.parameters import calibration
from srvmod.capacity.runs import poisson
from srvmod.capacity.steptime import StepModel, Work
from srvmod.contract import Milliseconds, Seconds, to_milliseconds

P95 = 0.95
P95_OVER_MEAN = 1.10
"""p95 over mean of a request's mean time per token: 33.7 / 30.5 ms, vLLM 0.9.2 on 8 H100 (MLPerf v5.1). Single
gaps are spread wider, because some steps carry more prefill than others."""
P95_DEVIATIONS = 1.645
"""Standard deviations from the median to the 95th percentile of a normal distribution."""
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
    SEQUENCES = "sequence limit"
    """max_num_seqs: sessions beyond it wait for another one's answer to end."""
    PREFILL = "prefill budget"
    SESSIONS = "no limit below all sessions on one engine"


@dataclass(frozen=True)
class Prediction:
    """One engine in steady state with a number of decoding sessions. Times in ms, rates in tokens/s.

    Near saturation there is no time to name: a little more load lets a queue grow without end. The p95s and the TTFT
    are infinite there, and `saturated` says what is full.
    """

    sessions: int
    itl_mean_ms: Milliseconds
    itl_p95_ms: Milliseconds
    """Of a request's mean."""
    itl_gap_p95_ms: Milliseconds
    """Of single gaps between two tokens: what vLLM's own histogram counts."""
    ttft_p50_ms: Milliseconds
    ttft_p95_ms: Milliseconds
    tokens_per_second: float
    kv_share: float
    """KV cache in use on average, of all that fits; more than 1 can't be."""
    prefill_share: float
    """Prompt tokens that arrive per step, of those that the token budget leaves room for."""
    sequence_share: float
    """Sessions, of the sequences that the engine decodes at once (max_num_seqs)."""

    @property
    def saturated(self) -> Limit | None:
        """What is so full that latency can't be told; None while it can."""
        return next(self.full(), None)

    def full(self) -> Iterator[Limit]:
        """Everything that is too full."""
        if self.prefill_share > MOST_PREFILL_SHARE:
            yield Limit.PREFILL
        if self.kv_share > MOST_KV_SHARE:
            yield Limit.KV_CACHE
        if self.sequence_share > 1:
            yield Limit.SEQUENCES

    def itl(self, per: Per) -> Milliseconds:
        """The p95 that a target is held against."""
        return self.itl_p95_ms if per is Per.REQUEST else self.itl_gap_p95_ms


@dataclass(frozen=True)
class _Steps:
    """Kinds of steps: the share of each, and how long it takes."""

    shares: Sequence[float]
    times: Sequence[Seconds]

    @property
    def mean(self) -> Seconds:
        return Seconds(sum(share * time for share, time in zip(self.shares, self.times, strict=True)))

    def quantile(self, share: float) -> Seconds:
        """The time that `share` of the steps stay within."""
        seen = 0.0
        pairs = sorted(zip(self.times, self.shares, strict=True))
        for time, part in pairs:
            seen += part
            if seen >= share:
                return time
        return pairs[-1][0]


def predict_steady(traffic: Traffic, engine: StepModel, layout: Layout, room: KvRoom, sessions: int) -> Prediction:
    """Steady state of one engine that decodes `sessions` streams of the mix."""
    arriving = sessions * traffic.prefill_per_output_token
    free = max(0.0, layout.max_num_batched_tokens - sessions)
    prefill_share = arriving / free if free else math.inf
    kv_share = sessions * (traffic.mean_context + (layout.block_tokens - 1) / 2) / room.tokens
    steps = _steps(traffic, engine, sessions, free, starved=prefill_share >= 1)
    mean = to_milliseconds(steps.mean)
    endless = Milliseconds(math.inf)
    state = Prediction(
        sessions=sessions,
        itl_mean_ms=mean,
        itl_p95_ms=endless,
        itl_gap_p95_ms=endless,
        ttft_p50_ms=endless,
        ttft_p95_ms=endless,
        tokens_per_second=sessions / steps.mean,
        kv_share=kv_share,
        prefill_share=prefill_share,
        sequence_share=sessions / layout.max_num_seqs,
    )
    if state.saturated:
        return state
    median, slow = _ttft(traffic, engine, layout, sessions, free=free, steps=steps)
    return replace(
        state,
        itl_p95_ms=Milliseconds(mean * P95_OVER_MEAN),
        itl_gap_p95_ms=to_milliseconds(steps.quantile(P95)),
        ttft_p50_ms=median,
        ttft_p95_ms=slow,
    )


def _work(traffic: Traffic, sessions: float, prefill: float) -> Work:
    """A step that decodes all sessions and computes prompt tokens; each attends to the prefix found in the cache."""
    computed = traffic.computed_prompt
    pairs = prefill * (traffic.prompt_tokens - computed / 2)
    prompts = prefill / computed if computed else 0.0
    return Work(sessions, sessions * traffic.mean_context, prefill, pairs, prompts)


def _steps(traffic: Traffic, engine: StepModel, sessions: int, free: float, *, starved: bool) -> _Steps:
    """Kinds of steps by the number of prompts that arrived, cut at the token budget; what is cut comes later."""
    rate, computed = sessions / traffic.output_tokens, traffic.computed_prompt
    if starved:
        return _Steps((1.0,), (engine.seconds(_work(traffic, sessions, free)),))
    kinds = list(_kinds(rate, computed, free))
    whole = sum(share for share, _ in kinds)
    carried = sum(share * prefill for share, prefill in kinds) / whole
    cut = max(0.0, rate * computed - carried)
    later = cut / (free - carried) if cut and free > carried else 0.0
    shares = [share / whole * (1 - later) for share, _ in kinds]
    times = [engine.seconds(_work(traffic, sessions, prefill)) for _, prefill in kinds]
    return _Steps((*shares, later), (*times, engine.seconds(_work(traffic, sessions, free))))


def _kinds(rate: float, computed: float, free: float) -> Iterator[tuple[float, float]]:
    """Shares of steps and the prompt tokens in them; all that reach the budget are one kind."""
    rest, prefill = 1.0, 0.0
    for prompts, share in poisson(rate):
        prefill = prompts * computed
        if prompts and prefill >= free:
            break
        yield share, prefill
        rest -= share
    if rest > 1e-9:
        yield rest, min(free, prefill)


def _ttft(
    traffic: Traffic, engine: StepModel, layout: Layout, sessions: int, *, free: float, steps: _Steps
) -> tuple[Milliseconds, Milliseconds]:
    """Median and 95th percentile of the time to first token: a request's own prompt, and what it waits beside that."""
    rate = sessions / traffic.output_tokens
    context = sessions * traffic.mean_context
    own = own_seconds(
        engine,
        decodes=sessions,
        context=context,
        computed=traffic.computed_prompt,
        prompt=traffic.prompt_tokens,
        beside=rate,
        room=free,
    )
    waiting = calibration().waiting

    def at(deviations: float) -> Milliseconds:
        return first_token_ms(to_milliseconds(own), to_milliseconds(steps.mean), waiting, layout.stack, deviations)

    return at(0.0), at(P95_DEVIATIONS)


def misses(prediction: Prediction, traffic: Traffic, slo: Slo) -> Iterator[Limit]:
    """The limits that an engine in this state is beyond; none when it holds the targets."""
    yield from prediction.full()
    if prediction.itl(slo.per) > slo.itl_p95:
        yield Limit.ITL
    if traffic.tokens_per_second and prediction.itl_mean_ms > traffic.sessions / traffic.tokens_per_second * 1e3:
        yield Limit.THROUGHPUT
    if prediction.ttft_p95_ms > slo.ttft:
        yield Limit.TTFT
