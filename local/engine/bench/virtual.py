"""The simulated engine at virtual time: its own step loop without HTTP, as fast as it computes.

A closed loop: every session asks again when its answer is complete, at a random moment of the step that follows, as
clients do whom nothing keeps in time with the engine.
"""

from __future__ import annotations

import asyncio
import heapq
import math
import random
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from srvmod_engine.config import EngineConfig, build_config
from srvmod_engine.engine import Engine
from srvmod_engine.metrics import EngineMetrics
from srvmod_engine.options import SimOptions
from srvmod_engine.sequence import Group, Sequence, Writer
from srvmod_engine.serve_args import parse
from srvmod_engine.step_model import StepBatch, StepModel, load_step_model
from srvmod_engine.tokens import Answer

_HIT_BLOCK: Final = 16
"""Shared beginnings end with a block, since only whole blocks are found again."""


class VirtualClock:
    """A clock that jumps, from event to event. It gives the event loop a turn after each wait, as a real one would."""

    def __init__(self) -> None:
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def now(self) -> float:
        """Seconds since it was made."""
        return self._now

    async def sleep_until(self, moment: float) -> None:
        """Be there, after everything that happens before."""
        while self._events and self._events[0][0] <= moment:
            self.jump()
        self._now = max(self._now, moment)
        await asyncio.sleep(0)

    def call_at(self, moment: float, action: Callable[[], None]) -> None:
        """Let something happen at a moment."""
        self._number += 1
        heapq.heappush(self._events, (moment, self._number, action))

    def jump(self) -> None:
        """Be at the next event, and let it happen; nothing when there is none."""
        if self._events:
            moment, _, action = heapq.heappop(self._events)
            self._now = max(self._now, moment)
            action()

    def hold_until(self, moment: float) -> None:
        """Nothing: sending takes no time here."""


@dataclass(frozen=True)
class Mix:
    """Sessions of one engine and their requests (tokens). `spread` is deviation over mean of both lengths."""

    sessions: int
    prompt: int
    output: int
    prefix_hit_rate: float = 0.0
    spread: float = 0.0

    def length(self, mean: int, source: random.Random, longest: int) -> int:
        """A lognormal length around `mean`; the mean itself without spread."""
        if not self.spread:
            return mean
        variance = math.log(1 + self.spread**2)
        drawn = source.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance))
        return min(longest, max(1, round(drawn)))


@dataclass
class Observed:
    """What a run saw after its warm-up. Times in seconds."""

    seconds: float = 0.0
    tokens: int = 0
    gaps: array[float] = field(default_factory=lambda: array("d"))
    request_means: array[float] = field(default_factory=lambda: array("d"))
    first_tokens: array[float] = field(default_factory=lambda: array("d"))
    steps: list[tuple[StepBatch, float]] = field(default_factory=list)
    preemptions: int = 0
    kv_share: float = 0.0


class _Recorder:
    """The step model, with a record of what it was asked and what it said."""

    def __init__(self, model: StepModel, observed: Observed) -> None:
        self._model = model
        self._observed = observed
        self.on = False
        self.last = 0.0
        """Length of the last step, seconds."""

    def seconds(self, batch: StepBatch) -> float:
        """See StepModel."""
        seconds = self._model.seconds(batch)
        self.last = seconds
        if self.on:
            self._observed.steps.append((batch, seconds))
        return seconds


class _Session:
    """One client: the Sink of one sequence after the other."""

    def __init__(self, loop: ClosedLoop) -> None:
        self._loop = loop
        self._asked = self._first = self._last = 0.0
        self._tokens = 0

    def ask(self, *, first: bool = False) -> None:
        """Queue the next request; the first ones are under way to different extents, so that they end apart."""
        sequence = self._loop.request(self, shortened=first)
        self._asked = self._loop.engine.clock.now()
        self._tokens = 0
        self._loop.engine.submit(sequence)

    def events(self, start: int, end: int) -> list[bytes]:
        """Nothing is sent, but its number is counted."""
        return [b""] * max(0, min(end, self._tokens_in_all - 1) - start)

    def writer(self) -> Writer:
        """See Sink."""
        return self._write

    def _write(self, _: bytes) -> bool:
        self._count()
        return True

    def token(self, token: int, text: str, finish_reason: str | None) -> None:
        """See Sink."""
        self._count()
        if finish_reason is not None:
            observed = self._loop.observed
            if self._loop.on and self._tokens > 1:
                observed.request_means.append((self._last - self._first) / (self._tokens - 1))
            self._loop.later(self.ask)

    def aborted(self) -> None:
        """See Sink."""

    def _count(self) -> None:
        now = self._loop.engine.clock.now()
        self._tokens += 1
        on = self._loop.on
        observed = self._loop.observed
        if self._tokens == 1:
            self._first = now
            if on:
                observed.first_tokens.append(now - self._asked)
        elif on:
            observed.gaps.append(now - self._last)
        observed.tokens += on
        self._last = now

    _tokens_in_all = 0

    def expect(self, tokens: int) -> None:
        """How long the next answer will be."""
        self._tokens_in_all = tokens


class ClosedLoop:
    """Sessions around one engine."""

    def __init__(self, config: EngineConfig, mix: Mix, seed: int = 1) -> None:
        self._config = config
        self._mix = mix
        self._random = random.Random(seed)
        self._number = 0
        self.observed = Observed()
        self.on = False
        self._recorder = _Recorder(load_step_model(config), self.observed)
        self._metrics = EngineMetrics(config)
        self._clock = VirtualClock()
        self.engine = Engine(config, self._recorder, self._clock, self._metrics)

    def later(self, action: Callable[[], None]) -> None:
        """At a random moment within the length of a step."""
        self._clock.call_at(self._clock.now() + self._random.random() * self._recorder.last, action)

    def request(self, session: _Session, *, shortened: bool) -> Sequence:
        """A request of the mix: its own tokens after those that all share."""
        mix, source = self._mix, self._random
        half = self._config.max_model_len // 2
        prompt = mix.length(mix.prompt, source, half)
        output = mix.length(mix.output, source, half)
        if shortened:
            output = source.randint(1, output)
        self._number += 1
        shared = int(prompt * mix.prefix_hit_rate) // _HIT_BLOCK * _HIT_BLOCK
        tokens = [1] * shared + [1000 + self._number] * (prompt - shared)
        answer = Answer(self._number, max_tokens=output, natural_length=output + 1)
        session.expect(output)
        return Sequence(tokens, answer, session, output, self.engine.clock.now(), Group(1, 1))

    async def run(self, warm_answers: float, answers: float) -> Observed:
        """Warm up and measure for as long as about so many answers of one session take."""
        self.engine.start()
        for _ in range(self._mix.sessions):
            _Session(self).ask(first=True)
        clock = self.engine.clock
        steps = self._metrics.lag
        target = warm_answers * self._mix.output
        await self._until(lambda: sum(steps.counts) >= target)
        began, preempted = clock.now(), self._metrics.counters["vllm:num_preemptions"]
        self.on = self._recorder.on = True
        shares: list[float] = []
        target = sum(steps.counts) + answers * self._mix.output

        def done() -> bool:
            shares.append(self._metrics.gauges["vllm:kv_cache_usage_perc"])
            return sum(steps.counts) >= target

        await self._until(done)
        self.on = self._recorder.on = False
        observed = self.observed
        observed.seconds = clock.now() - began
        observed.preemptions = int(self._metrics.counters["vllm:num_preemptions"] - preempted)
        observed.kv_share = sum(shares) / len(shares)
        await self.engine.shutdown(0)
        return observed

    async def _until(self, done: Callable[[], bool]) -> None:
        while not done():
            if not self.engine.healthy:
                raise RuntimeError("the step loop died; its log says why")
            if not self.engine.unfinished:
                self._clock.jump()  # otherwise the engine's own waits move the clock
            await asyncio.sleep(0)


def engine_config(weights: Path, *flags: str, instance: str = "p5.48xlarge") -> EngineConfig:
    """The configuration of an engine with these words of `vllm serve`. Raises StartError."""
    sim = SimOptions(instance=instance)
    return build_config(parse([str(weights), "--load-format=dummy", *flags]), {}, sim)


def observe(config: EngineConfig, mix: Mix, *, warm_answers: float = 1.5, answers: float = 1.5) -> Observed:
    """Run a mix on an engine at virtual time. Raises StartError for a step model that can't be built."""
    return asyncio.run(ClosedLoop(config, mix).run(warm_answers, answers))
