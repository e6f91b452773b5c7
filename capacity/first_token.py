"""Time to first token: what a request waits for beyond its own prompt, and the fit of that wait.

A request waits for the step in progress, for prompts that came with it, for its own prompt's steps and until the token
has left the server. Its own steps come from the step model. The rest grows with the length of a step, so it is counted
in mean steps: a median number of them for each stack, and a spread about it (a logarithm's standard deviation, taken
from published 99th percentiles). HTTP and tokenizing are part of it: points of one request at a time, which have
neither, leave nothing over for a constant. `first_token_ms` is that sentence; the fit inverts it, and the planner's
figures and their error bands are both made by it. Dividing the wait by the share of the token budget that arriving
prompts leave free, as for a queue that fills up, was tried: families left out are then off by 28 % instead of 17 % in
the median and by 131 % instead of 52 % in the tail.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from srvmod.capacity.fitting import Features, seconds
from srvmod.capacity.parameters import StepParameters, Waiting
from srvmod.capacity.points import Kind, Point
from srvmod.capacity.runs import computed_prompt, limits_of
from srvmod.capacity.stacks import Stack
from srvmod.capacity.steptime import StepModel, Work
from srvmod.contract import Milliseconds, Seconds, to_milliseconds

P99_DEVIATIONS: Final = 2.326
"""Standard deviations from the median to the 99th percentile of a normal distribution."""
SHRINK: Final = 1.0
"""Points of a stack that weigh as much as all stacks together do."""
LEAST_STEPS: Final = 0.25
"""A request waits for a quarter of a step at least: measured values below are rounding of their sources."""


def first_token_ms(
    own: Milliseconds, step: Milliseconds, waiting: Waiting, stack: Stack, deviations: float = 0.0
) -> Milliseconds:
    """The time to first token `deviations` standard deviations above its median: a request's own prompt, and its wait.

    `own` is how long the steps of its prompt take, `step` the mean step.
    """
    return Milliseconds(own + waiting.quantile(stack, deviations) * step)


def waited_steps(measured: Milliseconds, own: Milliseconds, step: Milliseconds) -> float:
    """The wait that `first_token_ms` needs to give a measured time, at least `LEAST_STEPS`."""
    return max(LEAST_STEPS, (measured - own) / step)


@dataclass(frozen=True)
class FirstToken:
    """A measured time to first token in terms of the step model, ms. `step` is 0 for one request at a time."""

    point: Point
    own: Milliseconds
    """Steps of the request's prompt, with the prompts that arrive beside it."""
    step: Milliseconds
    """The mean step."""

    def median(self, waiting: Waiting) -> Milliseconds:
        """The predicted median."""
        return first_token_ms(self.own, self.step, waiting, self.point.stack)

    def p99(self, waiting: Waiting) -> Milliseconds:
        """The predicted 99th percentile."""
        return first_token_ms(self.own, self.step, waiting, self.point.stack, P99_DEVIATIONS)


def first_token_of(item: Features, parameters: StepParameters) -> FirstToken | None:
    """The time to first token of a point in terms of the step model; None for a point without one."""
    point = item.run.point
    if point.ttft_ms is None or point.kind.is_throughput:
        return None
    engine = StepModel(point.model, point.layout, parameters)
    alone = point.kind is Kind.BATCH_1
    decodes = 0.0 if alone else point.concurrency
    context = decodes * (point.prompt_tokens + point.output_tokens / 2)
    beside = decodes / point.output_tokens
    own = own_seconds(
        engine,
        decodes=decodes,
        context=context,
        computed=computed_prompt(point),
        prompt=point.prompt_tokens,
        beside=beside,
        room=limits_of(point).tokens - decodes,
    )
    step = 0.0 if alone else seconds(item, parameters)[0] / item.steps
    return FirstToken(point, to_milliseconds(own), to_milliseconds(Seconds(step)))


def own_seconds(
    engine: StepModel, *, decodes: float, context: float, computed: float, prompt: float, beside: float, room: float
) -> Seconds:
    """Steps that compute a prompt of `computed` tokens (of `prompt`, the others cached), at most `room` in each.

    `beside` is how many other prompts arrive per step; each step also decodes, `context` tokens together. Raises
    ZeroDivisionError without room.
    """

    def step(tokens: float) -> float:
        prompts = tokens / computed
        return engine.seconds(Work(decodes, context, tokens, tokens * (prompt - computed / 2), prompts))

    computed = max(1.0, computed)
    whole, rest = divmod(computed, room)
    last = step(min(room, rest + beside * computed)) if rest else 0.0
    return Seconds(whole * step(room) + last)


def fit_waiting(items: Sequence[FirstToken]) -> Waiting:
    """Median waits and spreads: of all stacks together by the median, of each drawn to it by `SHRINK` points."""
    waits: dict[Stack, list[float]] = {}
    spreads: dict[Stack, list[float]] = {}
    for item in items:
        if not item.step or item.point.ttft_ms is None:
            continue
        steps = math.log(waited_steps(item.point.ttft_ms, item.own, item.step))
        waits.setdefault(item.point.stack, []).append(steps)
        if item.point.ttft_p99_ms is not None:
            tail = math.log(waited_steps(item.point.ttft_p99_ms, item.own, item.step))
            spreads.setdefault(item.point.stack, []).append(max(0.0, tail - steps) / P99_DEVIATIONS)
    pooled, by_stack = _shrunk(waits)
    spread, spread_by_stack = _shrunk(spreads)
    return Waiting(
        steps=math.exp(pooled),
        spread=spread,
        stack_steps={stack: math.exp(value) for stack, value in by_stack.items()},
        stack_spread=spread_by_stack,
    )


def _shrunk(values: Mapping[Stack, Sequence[float]]) -> tuple[float, dict[Stack, float]]:
    """The median of the stacks' medians, and each stack's mean drawn to it. Raises ValueError without any value."""
    if not values:
        raise ValueError("no point has a time to first token; allowed: at least one with ttft_ms and ttft_p99_ms")
    pooled = median(median(found) for found in values.values())
    return pooled, {
        stack: (sum(found) + SHRINK * pooled) / (len(found) + SHRINK) for stack, found in sorted(values.items())
    }
