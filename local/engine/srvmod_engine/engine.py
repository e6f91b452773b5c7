"""The step loop: schedule, wait as long as the step model says, hand out one token per sequence.

One task runs it. Requests come through the front end, join at step boundaries and leave as soon as they have their
last token. The tokens of a
step are made while it runs, so that only sending is left when it ends. When the simulation itself is too slow for the
configured speed it says so (see `punctuality`) instead of pretending to have been on time.
"""

import asyncio
import logging
import math
from enum import Enum
from typing import Final

from srvmod_engine import figures
from srvmod_engine.clock import Clock
from srvmod_engine.config import EngineConfig
from srvmod_engine.front_end import FrontEnd
from srvmod_engine.hardware import first_token_wait
from srvmod_engine.histogram import Run
from srvmod_engine.kv_cache import KVCache
from srvmod_engine.metrics import EngineMetrics
from srvmod_engine.punctuality import GROUP, Punctuality
from srvmod_engine.scheduler import Limits, Plan, Scheduler
from srvmod_engine.sequence import Sequence
from srvmod_engine.step_model import StepModel

_log = logging.getLogger(__name__)


_MOST_OF_A_STEP: Final = 0.7
"""Share of a step within which its tokens leave, however many they are."""


class State(Enum):
    """Life of the engine; after RUNNING no new request is taken."""

    RUNNING = "running"
    DRAINING = "draining"
    STOPPED = "stopped"


class QueueFullError(Exception):
    """An admission limit was hit: vLLM answers 503. `reason` is the metric's label."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Engine:
    """A simulated vLLM engine core."""

    def __init__(self, config: EngineConfig, steps: StepModel, clock: Clock, metrics: EngineMetrics) -> None:
        self.config = config
        self.metrics = metrics
        self.clock = clock
        self.state = State.RUNNING
        self._steps = steps
        self._scheduler = Scheduler(
            KVCache(config.num_blocks, config.block_size, prefix_caching=config.prefix_caching),
            Limits(
                max_num_seqs=config.max_num_seqs,
                max_num_batched_tokens=config.max_batched_tokens,
                chunked_prefill=config.chunked_prefill,
                long_prefill_tokens=config.long_prefill_tokens,
                reserve_whole_prompt=config.reserve_whole_prompt,
                watermark=config.watermark,
            ),
        )
        self._front_end = FrontEnd(first_token_wait(config), config.sim.seed)
        self._punctuality = Punctuality(metrics)
        self._begun: list[Sequence] = []
        """Sequences that got their first token in the last step."""
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None

    @property
    def unfinished(self) -> int:
        """Sequences on their way, waiting or running."""
        return len(self._scheduler.running) + len(self._scheduler.waiting) + len(self._front_end)

    @property
    def healthy(self) -> bool:
        """False once the step loop has died: /health then answers 503, as vLLM's does."""
        return self._task is not None and (not self._task.done() or self.state is State.STOPPED)

    def start(self) -> None:
        """Start the step loop in the running event loop."""
        self._task = asyncio.get_running_loop().create_task(self._run(), name="engine-steps")
        self._task.add_done_callback(self._ended)

    def admit(self, sequences: int) -> None:
        """Check vLLM's queue limits for a request of `sequences` choices. Raises QueueFullError."""
        limit = self.config.max_queued_requests
        if limit is not None and self.unfinished + sequences > limit:
            self.metrics.rejections["max_num_queued_reqs"] += 1
            raise QueueFullError(
                "max_num_queued_reqs",
                "The engine is currently busy and cannot accept new requests. "
                "Please try again later or on a different instance.",
            )
        tokens = self.config.max_queued_tokens
        if (
            tokens is not None
            and sum(len(seq.prompt) for seq in [*self._scheduler.waiting, *self._front_end]) >= tokens
        ):
            self.metrics.rejections["max_num_queued_tokens"] += 1
            raise QueueFullError(
                "max_num_queued_tokens",
                "The engine has reached its prefill token backlog limit. "
                "Please try again later or on a different instance.",
            )

    def submit(self, seq: Sequence) -> None:
        """Take a sequence; its sink gets the tokens."""
        now = self.clock.now()
        if not self._front_end.hold(seq, now):
            self._queue(seq, now)
        self._idle.clear()
        self._wake.set()

    def cancel(self, seq: Sequence) -> None:
        """Forget a sequence whose client has gone: its blocks are free for the next step."""
        if seq.finished:
            return
        self._remove(seq)
        self._note_queue()

    async def shutdown(self, timeout: float) -> None:
        """Refuse new work, let what runs finish for `timeout` seconds, then abort the rest."""
        self.state = State.DRAINING
        if timeout > 0 and self.unfinished:
            _log.info("[shutdown] draining in-flight requests count=%d timeout=%ds", self.unfinished, timeout)
            try:
                await asyncio.wait_for(self._idle.wait(), timeout)
            except TimeoutError:
                _log.warning("[shutdown] %d requests did not finish within %ds", self.unfinished, timeout)
        left = self._everyone()
        if left:
            _log.info("[shutdown] aborting in-flight requests count=%d", len(left))
        for seq in left:
            self._remove(seq)
            seq.sink.aborted()
        self.state = State.STOPPED
        self._wake.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    def _everyone(self) -> list[Sequence]:
        return [*self._scheduler.running, *self._scheduler.waiting, *self._front_end]

    def _remove(self, seq: Sequence) -> None:
        if self._front_end.remove(seq):
            seq.finished = True
        else:
            self._scheduler.remove(seq)
        self.metrics.success["abort"] += 1

    def _queue(self, seq: Sequence, now: float) -> None:
        seq.queued = now
        self._scheduler.add(seq)

    def _let_in(self) -> None:
        """Those whose time has come; everybody when there is nothing else to do."""
        now = self.clock.now()
        for seq in self._front_end.due(now if self._scheduler.has_work() else math.inf):
            self._queue(seq, now)

    async def _run(self) -> None:
        scheduler = self._scheduler
        clock = self.clock
        deadline = clock.now()
        while self.state is not State.STOPPED:
            self._let_in()
            if not scheduler.has_work():
                self._front_end.idle()
                self._note_queue()
                self._punctuality.pause()
                self._idle.set()
                self._wake.clear()
                await self._wake.wait()
                deadline = clock.now()
                continue
            plan = scheduler.schedule()
            self._started(plan, deadline)
            seconds = self._steps.seconds(plan.batch) * self.config.sim.time_scale
            deadline += seconds
            self._front_end.stepped(seconds)
            self._make_ready(plan)
            await clock.sleep_until(deadline)
            begun = clock.now()
            self._hand_out(plan, begun, seconds)
            if not self._punctuality.step(planned=seconds, due=deadline, begun=begun, ended=clock.now()):
                deadline = begun  # smaller delays are made up for, so that the mean stays right

    def _started(self, plan: Plan, now: float) -> None:
        metrics = self.metrics
        for seq in plan.admitted:
            seq.scheduled = max(now, seq.queued)  # `now` is when the step was due, and it may begin late
            self._front_end.scheduled(seq, now)
        if plan.queried:
            metrics.counters["vllm:prefix_cache_queries"] += plan.queried
            metrics.counters["vllm:prefix_cache_hits"] += plan.hits
            metrics.cached_by_tier["device"] += plan.hits
        metrics.counters["vllm:num_preemptions"] += plan.preempted
        self._note_queue()

    def _make_ready(self, plan: Plan) -> None:
        """A block's worth of events for every stream that has begun a new block."""
        size = self.config.block_size
        for seq in [*plan.extended, *self._begun]:
            done = seq.generated
            if done and not seq.ready and not seq.finished:
                # To the end of the block, where the sequence comes by here again.
                seq.ready = seq.sink.events(done, done + size - (seq.target - 1) % size)
                seq.ready.reverse()
                seq.write = seq.sink.writer()
        self._begun = []

    def _hand_out(self, plan: Plan, now: float, step: float) -> None:
        """Send every sequence that finished a forward pass its next token.

        Tokens leave at places of their own within the step, so that one that takes longer shifts only its neighbours
        and each client sees even intervals.
        """
        sampling = plan.sampling
        metrics = self.metrics
        clock = self.clock
        itl = Run(metrics.histograms["vllm:inter_token_latency_seconds"], now)
        pace = min(self.config.sim.send_pace_us * 1e-6, _MOST_OF_A_STEP * step / len(sampling)) if sampling else 0.0
        others: list[Sequence] = []
        for start in range(0, len(sampling), GROUP):
            clock.hold_until(now + start * pace)
            group = sampling[start : start + GROUP]
            self._punctuality.group(clock.now(), len(group))
            for seq in group:
                if not seq.ready:
                    others.append(seq)
                    continue
                if not seq.write(seq.ready.pop()):
                    seq.ready.clear()
                seq.generated += 1
                if seq.last_token == itl.since:
                    itl.times += 1
                else:
                    itl.begin(seq.last_token)
                seq.last_token = now
        itl.end()
        # What takes longer comes last, so that it delays nobody else.
        left = [seq for seq in others if not seq.finished]
        ended = [seq for seq in left if self._one_token(seq, now)]
        tokens = len(sampling) - len(others) + len(left)
        metrics.counters["vllm:generation_tokens"] += tokens
        metrics.histograms["vllm:iteration_tokens_total"].observe(plan.batch.prefill_tokens + tokens)
        self._scheduler.finish(ended)
        for seq in ended:
            figures.ended(self.metrics, seq, now)

    def _one_token(self, seq: Sequence, now: float) -> bool:
        """First and last tokens, and all those of answers that aren't plain streams; whether it was the last."""
        answer, number = seq.answer, seq.generated
        seq.generated += 1
        last = seq.generated >= answer.stop.length
        if number:
            self.metrics.histograms["vllm:inter_token_latency_seconds"].observe(now - seq.last_token)
        else:
            figures.begun(self.metrics, seq, now)
            self._begun.append(seq)
        seq.last_token = now
        (token,) = answer.ids(number, number + 1)
        seq.sink.token(token, answer.text(number), answer.stop.finish_reason if last else None)
        return last

    def _note_queue(self) -> None:
        gauges = self.metrics.gauges
        gauges["vllm:num_requests_running"] = len(self._scheduler.running)
        gauges["vllm:num_requests_waiting"] = len(self._scheduler.waiting)
        gauges["vllm:kv_cache_usage_perc"] = self._scheduler.cache.usage

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("the step loop died; /health answers 503 from now on", exc_info=error)
            for seq in self._everyone():
                seq.sink.aborted()
