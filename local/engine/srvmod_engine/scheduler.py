"""Continuous batching as vLLM's V1 scheduler does it: running sequences first, then waiting ones, one token budget.

Pure bookkeeping without time or I/O: `schedule()` says what the next step computes, `complete()` applies it.
"""

from collections import deque
from dataclasses import dataclass, field

from srvmod_engine.kv_cache import KVCache
from srvmod_engine.sequence import Sequence
from srvmod_engine.step_model import StepBatch


@dataclass(slots=True)
class Plan:
    """One step: which sequence computes how many tokens, and what the scheduler did to get there."""

    work: list[tuple[Sequence, int]]
    batch: StepBatch
    admitted: list[Sequence] = field(default_factory=list)
    """First scheduled in this step (not resumed after a preemption)."""
    preempted: int = 0
    queried: int = 0
    """Tokens that were looked up in the prefix cache."""
    hits: int = 0
    """Of these, tokens found."""


class Scheduler:
    """Waiting and running sequences, and the KV cache they share."""

    def __init__(self, cache: KVCache, *, max_seqs: int, max_tokens: int, chunked_prefill: bool) -> None:
        self.cache = cache
        self.max_seqs = max_seqs
        self.max_tokens = max_tokens
        self.chunked_prefill = chunked_prefill
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []

    def add(self, seq: Sequence) -> None:
        """Queue a new sequence; it joins at a step boundary."""
        seq.target = seq.length
        self.waiting.append(seq)

    def remove(self, seq: Sequence) -> None:
        """Drop a sequence at once (client gone, shutdown). Harmless when it has already ended."""
        if seq.finished:
            return
        seq.finished = True
        if seq in self.running:
            self.running.remove(seq)
        elif seq in self.waiting:
            self.waiting.remove(seq)
        self.cache.release(seq)

    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self.running or self.waiting)

    def schedule(self) -> Plan:
        """Choose the next step's work."""
        budget = self.max_tokens
        work: list[tuple[Sequence, int]] = []
        decode_seqs = decode_context = prefill_tokens = prefill_context = prefill_seqs = 0
        preempted = 0
        index = 0
        running = self.running
        while index < len(running) and budget > 0:
            seq = running[index]
            todo = seq.target - seq.computed
            count = todo if todo <= budget else budget
            if not self.cache.grow(seq, seq.computed + count):
                gone = self._make_room(seq, seq.computed + count)
                preempted += gone
                if index == len(running):
                    break  # it was the last one and had to go itself
            work.append((seq, count))
            budget -= count
            if todo == 1 and seq.output:
                decode_seqs += 1
                decode_context += seq.computed + 1
            else:
                prefill_seqs += 1
                prefill_tokens += count
                prefill_context += count * (seq.computed + (count + 1) // 2)
            index += 1
        plan = Plan(work, StepBatch(0, 0, 0, 0, 0), preempted=preempted)
        while not preempted and budget > 0 and self.waiting and len(running) < self.max_seqs:
            count = self._admit(plan, budget)
            if not count:
                break
            seq = running[-1]
            budget -= count
            prefill_seqs += 1
            prefill_tokens += count
            prefill_context += count * (seq.computed + (count + 1) // 2)
        plan.batch = StepBatch(decode_seqs, decode_context, prefill_tokens, prefill_context, prefill_seqs)
        return plan

    def _admit(self, plan: Plan, budget: int) -> int:
        """Start the first waiting sequence; the tokens it computes, 0 when it must wait longer."""
        seq = self.waiting[0]
        found = self.cache.attach_prefix(seq)
        todo = seq.target - seq.computed
        count = min(todo, budget)
        fits = count == todo or self.chunked_prefill
        if not fits or not self.cache.grow(seq, seq.computed + count):
            self.cache.release(seq)
            return 0
        self.waiting.popleft()
        self.running.append(seq)
        plan.work.append((seq, count))
        plan.queried += seq.target
        plan.hits += found
        if not seq.preemptions:
            seq.cached_prompt = found
            plan.admitted.append(seq)
        return count

    def _make_room(self, seq: Sequence, tokens: int) -> int:
        """Preempt from the end of the batch until `seq` fits or has gone itself; how many went."""
        gone = 0
        while not self.cache.grow(seq, tokens):
            # The sequence that came last gives way, as with vLLM's fcfs policy.
            victim = self.running.pop()
            self._preempt(victim)
            gone += 1
            if victim is seq:
                break
        return gone

    def _preempt(self, seq: Sequence) -> None:
        """Vacate its blocks; it will be computed again from what the prefix cache still has."""
        self.cache.release(seq)
        seq.preemptions += 1
        seq.target = seq.length
        self.waiting.appendleft(seq)

    def complete(self, plan: Plan) -> list[Sequence]:
        """Apply a finished step; the sequences that sample a token now, in batch order."""
        sampling: list[Sequence] = []
        block = self.cache.block_size
        for seq, count in plan.work:
            if seq.finished:
                continue  # removed while the step ran
            before = seq.computed
            seq.computed = before + count
            if before // block != seq.computed // block:
                self.cache.publish(seq)
            if seq.computed == seq.target:
                seq.target += 1
                sampling.append(seq)
        return sampling

    def finish(self, ended: list[Sequence]) -> None:
        """Take sequences that got their last token out of the batch; their room is free for the next step."""
        if not ended:
            return
        for seq in ended:
            seq.finished = True
            self.cache.release(seq)
        self.running = [seq for seq in self.running if not seq.finished]
