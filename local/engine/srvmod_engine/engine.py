"""The step loop: schedule, wait as long as the step model says, hand out one token per sequence.

One task runs it. Requests join at step boundaries and leave as soon as they have their last token. When the
simulation itself is too slow for the configured speed it says so (srvmod_sim_step_lag_seconds,
srvmod_sim_lagging_steps_total and a log line) instead of pretending to have been on time.
"""

import asyncio
import logging
from enum import Enum

from srvmod_engine.clock import Clock
from srvmod_engine.config import EngineConfig
from srvmod_engine.kv_cache import KVCache
from srvmod_engine.metrics import EngineMetrics
from srvmod_engine.scheduler import Plan, Scheduler
from srvmod_engine.sequence import Sequence
from srvmod_engine.step_model import StepModel

_log = logging.getLogger(__name__)
_LAG_LOG_SECONDS = 5.0


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
            max_seqs=config.max_num_seqs,
            max_tokens=config.max_batched_tokens,
            chunked_prefill=config.chunked_prefill,
        )
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        self._lag_logged = float("-inf")

    @property
    def unfinished(self) -> int:
        """Sequences waiting or running."""
        return len(self._scheduler.running) + len(self._scheduler.waiting)

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
        if tokens is not None and sum(len(seq.prompt) for seq in self._scheduler.waiting) >= tokens:
            self.metrics.rejections["max_num_queued_tokens"] += 1
            raise QueueFullError(
                "max_num_queued_tokens",
                "The engine has reached its prefill token backlog limit. "
                "Please try again later or on a different instance.",
            )

    def submit(self, seq: Sequence) -> None:
        """Queue a sequence; its sink gets the tokens."""
        self._scheduler.add(seq)
        self._idle.clear()
        self._wake.set()

    def cancel(self, seq: Sequence) -> None:
        """Forget a sequence whose client has gone: its blocks are free for the next step."""
        if seq.finished:
            return
        self._scheduler.remove(seq)
        self.metrics.success["abort"] += 1
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
        left = [*self._scheduler.running, *self._scheduler.waiting]
        if left:
            _log.info("[shutdown] aborting in-flight requests count=%d", len(left))
        for seq in left:
            self._scheduler.remove(seq)
            self.metrics.success["abort"] += 1
            seq.sink.aborted()
        self.state = State.STOPPED
        self._wake.set()
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        scheduler = self._scheduler
        clock = self.clock
        deadline = clock.now()
        while self.state is not State.STOPPED:
            if not scheduler.has_work():
                self._note_queue()
                self._idle.set()
                self._wake.clear()
                await self._wake.wait()
                deadline = clock.now()
                continue
            begun = deadline
            plan = scheduler.schedule()
            self._started(plan, begun)
            seconds = self._steps.seconds(plan.batch) * self.config.sim.time_scale
            deadline += seconds
            await clock.sleep_until(deadline)
            now = clock.now()
            self._hand_out(plan, now)
            deadline = self._account_lag(now - deadline, seconds, deadline, now)

    def _account_lag(self, lag: float, seconds: float, deadline: float, now: float) -> float:
        """Record how late the step was; the moment from which the next one counts."""
        self.metrics.lag.observe(max(0.0, lag))
        if lag <= max(seconds, 0.001):
            return deadline  # small delays are made up for, so that the mean stays right
        self.metrics.lagging += 1
        if now - self._lag_logged > _LAG_LOG_SECONDS:
            self._lag_logged = now
            _log.warning(
                "the simulation lags: a step of %.1f ms ended %.1f ms late; latencies are longer than the model's",
                seconds * 1e3,
                lag * 1e3,
            )
        return now

    def _started(self, plan: Plan, now: float) -> None:
        metrics = self.metrics
        cached = 0
        for seq in plan.admitted:
            seq.scheduled = now
            cached += seq.cached_prompt
        if plan.admitted:
            prompt = sum(len(seq.prompt) for seq in plan.admitted)
            metrics.counters["vllm:prompt_tokens"] += prompt
            metrics.counters["vllm:prompt_tokens_cached"] += cached
            metrics.prompt_by_source["local_compute"] += prompt - cached
            metrics.prompt_by_source["local_cache_hit"] += cached
        if plan.queried:
            metrics.counters["vllm:prefix_cache_queries"] += plan.queried
            metrics.counters["vllm:prefix_cache_hits"] += plan.hits
            metrics.cached_by_tier["device"] += plan.hits
        metrics.counters["vllm:num_preemptions"] += plan.preempted
        self._note_queue()

    def _hand_out(self, plan: Plan, now: float) -> None:
        """Give every sequence that finished a forward pass its next token."""
        sampling = self._scheduler.complete(plan)
        metrics = self.metrics
        latency = metrics.histograms["vllm:inter_token_latency_seconds"]
        ended: list[Sequence] = []
        previous = 0.0
        same = 0
        for seq in sampling:
            if seq.finished:
                continue  # its client went while an earlier token of this step was written
            token, text = seq.answer.next()
            output = seq.output
            output.append(token)
            stop = seq.answer.stop
            reason = stop.finish_reason if len(output) >= stop.length else None
            if len(output) == 1:
                seq.first_token = now
                metrics.histograms["vllm:time_to_first_token_seconds"].observe(now - seq.arrival)
            elif seq.last_token == previous:
                same += 1
            else:
                if same:
                    latency.observe(now - previous, same)
                previous = seq.last_token
                same = 1
            seq.last_token = now
            if reason is not None:
                ended.append(seq)
            seq.sink.token(token, text, reason)
        if same:
            latency.observe(now - previous, same)
        metrics.counters["vllm:generation_tokens"] += len(sampling)
        batch = plan.batch
        metrics.histograms["vllm:iteration_tokens_total"].observe(batch.prefill_tokens + len(sampling))
        self._scheduler.finish(ended)
        for seq in ended:
            self._finished(seq, now)

    def _finished(self, seq: Sequence, now: float) -> None:
        """The per-request figures, with vLLM's definitions (v1/metrics/stats.py)."""
        histograms = self.metrics.histograms
        self.metrics.success[seq.answer.stop.finish_reason] += 1
        decode = seq.last_token - seq.first_token
        generated = len(seq.output)
        for name, value in (
            ("e2e_request_latency_seconds", now - seq.arrival),
            ("request_queue_time_seconds", seq.scheduled - seq.arrival),
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

    def _note_queue(self) -> None:
        gauges = self.metrics.gauges
        gauges["vllm:num_requests_running"] = len(self._scheduler.running)
        gauges["vllm:num_requests_waiting"] = len(self._scheduler.waiting)
        gauges["vllm:kv_cache_usage_perc"] = self._scheduler.cache.usage

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.critical("the step loop died; /health answers 503 from now on", exc_info=error)
            for seq in [*self._scheduler.running, *self._scheduler.waiting]:
                seq.sink.aborted()
