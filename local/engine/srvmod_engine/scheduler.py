"""Continuous batching as vLLM's V1 scheduler does it: running sequences first, then waiting ones, one token budget.

Pure bookkeeping without time or I/O: `schedule()` says what the next step computes, `finish()` ends sequences.
"""

from collections import deque
from dataclasses import dataclass, field

from srvmod_engine.kv_cache import KVCache
from srvmod_engine.sequence import Sequence
from srvmod_engine.step_model import StepBatch


@dataclass(frozen=True)
class Limits:
    """What bounds a step, as vLLM's options of the same names say."""

    max_num_seqs: int
    max_num_batched_tokens: int
    chunked_prefill: bool = True
    long_prefill_tokens: int = 0
    """Most tokens of one prompt per step while others are there (--long-prefill-token-threshold); 0: no bound."""
    reserve_whole_prompt: bool = True
    """A prompt starts only when all of it will fit (--scheduler-reserve-full-isl)."""
    watermark: float = 0.0
    """Share of all blocks that admissions leave free (--watermark)."""


@dataclass(slots=True)
class Plan:
    """One step, and what the scheduler did to get there."""

    batch: StepBatch = field(default_factory=lambda: StepBatch(0, 0, 0, 0, 0))
    sampling: list[Sequence] = field(default_factory=list)
    """Sequences that have computed all their tokens with this step and so get another one, in batch order."""
    extended: list[Sequence] = field(default_factory=list)
    """Sequences that decode and got a block: the next `block_size` tokens of each need none."""
    admitted: list[Sequence] = field(default_factory=list)
    """First scheduled in this step (not resumed after a preemption)."""
    preempted: int = 0
    queried: int = 0
    """Tokens that were looked up in the prefix cache."""
    hits: int = 0
    """Of these, tokens found."""


class Scheduler:
    """Waiting and running sequences, and the KV cache they share."""

    def __init__(self, cache: KVCache, limits: Limits) -> None:
        self.cache = cache
        self.limits = limits
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self._headroom = int(limits.watermark * cache.blocks)

    def add(self, seq: Sequence) -> None:
        """Queue a new sequence; it joins at a step boundary."""
        seq.target = seq.length
        self.waiting.append(seq)

    def remove(self, seq: Sequence) -> None:
        """Drop a sequence at once (client gone, shutdown). Harmless when it has already ended."""
        if seq.finished:
            return
        seq.finished = True
        seq.ready.clear()
        if seq.running:
            self.running.remove(seq)
        else:
            self.waiting.remove(seq)
        self.cache.release(seq)

    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self.running or self.waiting)

    def schedule(self) -> Plan:
        """Choose the next step's work. Its tokens count as computed from now on, as they do in vLLM."""
        limits = self.limits
        budget = limits.max_num_batched_tokens
        others = len(self.running) + len(self.waiting) > 1
        most = limits.long_prefill_tokens if limits.long_prefill_tokens and others else budget
        plan = Plan()
        sampling = plan.sampling
        decodes = decode_context = 0
        prompts = _Prompts()
        for seq in self.running:
            if budget <= 0:
                break
            computed = seq.computed
            todo = seq.target - computed
            count = 1 if todo == 1 else min(todo, budget, most)
            end = computed + count
            # The one comparison covers both a new block and a full one; most steps of a sequence need neither.
            if end >= seq.room:
                if not self._extend(seq, end, plan):
                    break  # it was the last one and had to go itself
                plan.extended.append(seq)
            seq.computed = end
            budget -= count
            if count == todo:
                seq.target = end + 1
                sampling.append(seq)
            if todo == 1:
                decodes += 1
                decode_context += end
            else:
                prompts.add(computed, count)
        while budget > 0 and self.waiting and not plan.preempted and len(self.running) < limits.max_num_seqs:
            seq = self.waiting[0]
            headroom = self._headroom if decodes or prompts.chunks else 0
            count = self._admit(seq, plan, budget, most, headroom)
            if not count:
                break
            budget -= count
            prompts.add(seq.computed, count)
            seq.computed += count
            if seq.computed == seq.target:
                seq.target += 1
                sampling.append(seq)
        plan.batch = StepBatch(decodes, decode_context, prompts.tokens, prompts.context, prompts.chunks)
        return plan

    def _extend(self, seq: Sequence, end: int, plan: Plan) -> bool:
        """Blocks for a running sequence; the ones that came last give way, as with vLLM's fcfs policy."""
        while not self.cache.extend(seq, end):
            victim = self.running.pop()
            self._preempt(victim)
            plan.preempted += 1
            if victim is seq:
                return False
        return True

    def _preempt(self, seq: Sequence) -> None:
        """Vacate its blocks; it will be computed again from what the prefix cache still has."""
        self.cache.release(seq)
        seq.running = False
        seq.preemptions += 1
        seq.target = seq.length
        self.waiting.appendleft(seq)

    def _admit(self, seq: Sequence, plan: Plan, budget: int, most: int, headroom: int) -> int:
        """Start the first waiting sequence; the tokens it computes, 0 when it must wait longer."""
        found = self.cache.lookup(seq)
        hits = len(found) * self.cache.block_size
        count = min(seq.target - hits, most)
        if count > budget and not self.limits.chunked_prefill:
            return 0
        count = min(count, budget)
        if not self.cache.admit(seq, found, count, whole=self.limits.reserve_whole_prompt, headroom=headroom):
            return 0
        self.waiting.popleft()
        self.running.append(seq)
        seq.running = True
        plan.queried += seq.target
        plan.hits += hits
        if not seq.preemptions:
            seq.cached_prompt = hits
            plan.admitted.append(seq)
        return count

    def finish(self, ended: list[Sequence]) -> None:
        """Take sequences that got their last token out of the batch; their room is free for the next step."""
        if not ended:
            return
        for seq in ended:
            seq.finished = True
            self.cache.release(seq)
        self.running = [seq for seq in self.running if not seq.finished]


class _Prompts:
    """The prompt chunks of one step."""

    __slots__ = ("chunks", "context", "tokens")

    def __init__(self) -> None:
        self.chunks = self.tokens = self.context = 0

    def add(self, before: int, count: int) -> None:
        """A chunk of `count` tokens after `before` others."""
        self.chunks += 1
        self.tokens += count
        self.context += count * (before + (count + 1) // 2)
