"""Continuous batching and KV blocks, step by step without time."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from srvmod_engine.kv_cache import KVCache
from srvmod_engine.scheduler import Limits, Plan, Scheduler
from srvmod_engine.sequence import Group, Sequence, Writer, nowhere
from srvmod_engine.step_model import StepBatch
from srvmod_engine.tokens import Answer


class Nowhere:
    def token(self, token: int, text: str, finish_reason: str | None) -> None:
        raise AssertionError("the scheduler doesn't hand out tokens")

    def events(self, start: int, end: int) -> list[bytes]:
        raise AssertionError("the scheduler doesn't hand out tokens")

    def writer(self) -> Writer:
        return nowhere

    def aborted(self) -> None:
        raise AssertionError("the scheduler doesn't hand out tokens")


def sequence(prompt: list[int], tokens: int) -> Sequence:
    answer = Answer(len(prompt), max_tokens=tokens, natural_length=10**6)
    return Sequence(prompt, answer, Nowhere(), tokens, 0.0, Group(1, 1))


def make(
    blocks: int = 100,
    *,
    seqs: int = 8,
    budget: int = 64,
    caching: bool = True,
    **more: Any,
) -> Scheduler:
    """One block more than asked for, since one is never given out."""
    cache = KVCache(blocks + 1, 16, prefix_caching=caching)
    return Scheduler(cache, Limits(max_num_seqs=seqs, max_num_batched_tokens=budget, **more))


def step(scheduler: Scheduler) -> tuple[Plan, list[Sequence]]:
    """One step; sequences that ended."""
    plan = scheduler.schedule()
    return plan, hand_out(scheduler, plan)


def hand_out(scheduler: Scheduler, plan: Plan) -> list[Sequence]:
    ended = []
    for seq in plan.sampling:
        if seq.finished:
            continue
        seq.generated += 1
        if seq.generated >= seq.answer.stop.length:
            ended.append(seq)
    scheduler.finish(ended)
    return ended


def test_a_short_request_passes_a_long_one_and_not_with_one_slot() -> None:
    order: dict[int, list[str]] = {}
    for slots in (8, 1):
        scheduler = make(seqs=slots)
        long, short = sequence([1] * 20, 30), sequence([2] * 20, 3)
        scheduler.add(long)
        step(scheduler)
        scheduler.add(short)
        names = []
        while scheduler.has_work():
            names += ["short" if seq is short else "long" for seq in step(scheduler)[1]]
        order[slots] = names
    assert order == {8: ["short", "long"], 1: ["long", "short"]}


def test_long_prompts_are_cut_into_chunks_and_decoding_goes_on() -> None:
    scheduler = make(budget=32)
    first, second = sequence([1] * 10, 20), sequence(list(range(100, 200)), 5)
    scheduler.add(first)
    step(scheduler)
    scheduler.add(second)
    chunks = []
    while not second.generated:
        before = first.generated
        plan, _ = step(scheduler)
        assert first.generated == before + 1, "decoding stalled"
        assert plan.batch.decode_seqs == 1
        chunks.append(plan.batch.prefill_tokens)
    assert chunks == [31, 31, 31, 7]


def test_without_chunked_prefill_a_prompt_waits_for_a_whole_step() -> None:
    scheduler = make(budget=32, chunked_prefill=False)
    scheduler.add(sequence([1] * 30, 5))
    scheduler.add(sequence([2] * 30, 5))
    plan, _ = step(scheduler)
    assert (plan.batch.prefill_tokens, plan.batch.prefill_seqs) == (30, 1)


def test_a_finished_request_makes_room_for_the_next_step() -> None:
    scheduler = make(seqs=1)
    scheduler.add(sequence([1] * 10, 1))
    waiting = sequence([2] * 10, 1)
    scheduler.add(waiting)
    step(scheduler)
    assert step(scheduler)[1] == [waiting]


def test_a_removed_request_gives_its_blocks_back_at_once() -> None:
    scheduler = make(caching=False)
    seq = sequence([1] * 100, 50)
    scheduler.add(seq)
    step(scheduler)
    assert scheduler.cache.in_use > 0
    scheduler.remove(seq)
    assert scheduler.cache.in_use == 0
    assert not scheduler.has_work()
    scheduler.remove(seq)  # harmless


def test_too_little_memory_preempts_the_last_one_and_it_still_finishes() -> None:
    scheduler = make(blocks=6, budget=64, caching=False)
    first, second = sequence([1] * 30, 40), sequence([2] * 30, 40)
    scheduler.add(first)
    scheduler.add(second)
    preempted = 0
    ended: list[Sequence] = []
    for _ in range(500):
        if not scheduler.has_work():
            break
        plan, done = step(scheduler)
        preempted += plan.preempted
        ended += done
    assert ended == [first, second]
    assert preempted == second.preemptions > 0
    assert first.preemptions == 0
    assert (first.generated, second.generated) == (40, 40)
    assert scheduler.cache.in_use == 0


def test_a_repeated_prompt_is_found_in_the_cache_except_its_last_token() -> None:
    scheduler = make()
    prompt = list(range(64))
    scheduler.add(sequence(prompt, 1))
    first, _ = step(scheduler)
    assert (first.queried, first.hits) == (64, 0)
    scheduler.add(sequence(prompt, 1))
    second, _ = step(scheduler)
    assert (second.queried, second.hits) == (64, 48)
    assert second.batch.prefill_tokens == 16
    longer = sequence([*prompt, *range(500, 520)], 1)
    scheduler.add(longer)
    step(scheduler)
    assert longer.cached_prompt == 64


def test_generated_blocks_are_found_too() -> None:
    scheduler = make()
    first = sequence(list(range(16)), 40)
    scheduler.add(first)
    while scheduler.has_work():
        step(scheduler)
    again = sequence([*first.prompt, *first.output(), 7], 1)
    scheduler.add(again)
    step(scheduler)
    # the last output token is never computed, so 55 of 56 tokens were: three whole blocks
    assert again.cached_prompt == 48


def test_idle_prefixes_give_way_to_new_requests() -> None:
    scheduler = make(blocks=8)
    scheduler.add(sequence(list(range(64)), 1))
    step(scheduler)
    assert scheduler.cache.pool.free == 8
    scheduler.add(sequence(list(range(1000, 1060)), 60))
    while scheduler.has_work():
        assert step(scheduler)[0].batch != StepBatch(0, 0, 0, 0, 0)
    again = sequence(list(range(64)), 1)
    scheduler.add(again)
    step(scheduler)
    assert again.cached_prompt < 48


def test_the_same_prompt_in_the_same_step_is_computed_once() -> None:
    scheduler = make(budget=200)
    first, second = sequence(list(range(64)), 1), sequence(list(range(64)), 1)
    scheduler.add(first)
    scheduler.add(second)
    plan, _ = step(scheduler)
    assert plan.batch.prefill_tokens == 64 + 16
    assert second.cached_prompt == 48


def test_two_that_compute_the_same_block_at_once_keep_a_copy_each() -> None:
    scheduler = make(budget=200)
    # Their first blocks become full in the same step, so neither finds the other's.
    pair = [sequence(list(range(15)), 10), sequence(list(range(15)), 10)]
    for seq in pair:
        scheduler.add(seq)
    for _ in range(3):
        step(scheduler)
    assert pair[0].contents[0] == pair[1].contents[0]
    assert pair[0].blocks[0] != pair[1].blocks[0]
    scheduler.remove(pair[0])
    third = sequence([*pair[1].tokens(0, 16), 9, 9], 1)
    scheduler.add(third)
    step(scheduler)
    assert third.cached_prompt == 16


def test_a_long_prompt_takes_at_most_its_share_while_others_are_there() -> None:
    scheduler = make(budget=64, long_prefill_tokens=8)
    scheduler.add(sequence(list(range(40)), 5))
    assert step(scheduler)[0].batch.prefill_tokens == 40
    scheduler.add(sequence(list(range(100, 140)), 5))
    assert [step(scheduler)[0].batch.prefill_tokens for _ in range(3)] == [8, 8, 8]


def test_a_prompt_waits_until_all_of_it_will_fit_or_not_if_so_told() -> None:
    started = {}
    for reserve in (True, False):
        scheduler = make(blocks=8, budget=32, caching=False, reserve_whole_prompt=reserve)
        scheduler.add(sequence([1] * 64, 60))
        step(scheduler)
        step(scheduler)
        late = sequence([2] * 80, 1)
        scheduler.add(late)
        step(scheduler)
        started[reserve] = late.running
    assert started == {True: False, False: True}


def test_the_watermark_keeps_admissions_but_not_the_first_one_from_the_last_blocks() -> None:
    scheduler = make(blocks=9, budget=200, caching=False, watermark=0.5)
    first, second = sequence([1] * 100, 5), sequence([2] * 10, 5)
    scheduler.add(first)
    scheduler.add(second)
    plan, _ = step(scheduler)
    assert plan.admitted == [first]
    while not first.finished:
        assert not second.running
        step(scheduler)
    step(scheduler)
    assert second.running


_REQUEST = st.tuples(st.sampled_from([1, 15, 16, 31, 33, 48, 60]), st.integers(1, 30), st.integers(0, 2))
_EVENT = st.one_of(
    st.tuples(st.just("arrive"), _REQUEST),
    st.tuples(st.just("leave"), st.integers(0, 20)),
    st.tuples(st.just("step"), st.integers(1, 20)),
)


class World:
    """What the memory of a GPU would hold, kept by the test itself: written when computed, checked when read."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.memory: dict[int, list[tuple[int, ...]]] = {}
        self.read: dict[int, int] = {}
        admit = scheduler.cache.admit

        def watched(seq: Sequence, found: list[int], count: int, **more: Any) -> bool:
            self.read[id(seq)] = len(found) * scheduler.cache.block_size
            return admit(seq, found, count, **more)

        scheduler.cache.admit = watched  # type: ignore[method-assign]

    def compute(self, before: dict[int, int]) -> None:
        """Every running sequence computes what the step gave it, after it has read everything before."""
        size = self.scheduler.cache.block_size
        for seq in self.scheduler.running:
            start = before.get(id(seq), self.read[id(seq)])
            for position in range(seq.computed):
                block = self.memory.setdefault(seq.blocks[position // size], [()] * size)
                whole = tuple(seq.tokens(0, position + 1))
                if position < start:
                    assert block[position % size] == whole, "it would read what somebody else wrote"
                block[position % size] = whole

    def check(self) -> None:
        """No block is lost, held twice, or free and held."""
        cache, pool = self.scheduler.cache, self.scheduler.cache.pool
        holders: dict[int, int] = {}
        for seq in self.scheduler.running:
            assert len(set(seq.blocks)) == len(seq.blocks)
            assert seq.computed <= seq.room == len(seq.blocks) * cache.block_size
            for block in seq.blocks:
                holders[block] = holders.get(block, 0) + 1
        for seq in self.scheduler.waiting:
            assert seq.blocks == []
        assert holders == {block: users for block, users in enumerate(pool._users) if users}
        untouched = range(pool._untouched, cache.blocks)
        assert set(pool._free) | set(untouched) == set(range(1, cache.blocks)) - set(holders)
        assert pool.free == len(pool._free) + len(untouched)
        assert cache.in_use == len(holders)
        named = {block: content for content, blocks in pool._known.items() for block in blocks}
        assert named == {block: content for block, content in enumerate(pool._hashes) if content is not None}
        for seq in self.scheduler.running:
            for index, block in enumerate(seq.blocks):
                if holders[block] > 1:
                    assert index < seq.named, "only full blocks with a name may be shared"


@settings(max_examples=50)
@given(
    st.lists(_EVENT, min_size=12, max_size=40),
    st.integers(6, 12),
    st.integers(1, 5),
    st.integers(8, 64),
    st.booleans(),
    st.booleans(),
    st.sampled_from([0.0, 0.2]),
)
def test_no_block_is_lost_or_shared_wrongly_whatever_comes_and_goes(  # noqa: PLR0917 - hypothesis gives them by position
    events: list[tuple[str, Any]],
    blocks: int,
    seqs: int,
    budget: int,
    caching: bool,
    reserve: bool,
    watermark: float,
) -> None:
    scheduler = make(
        blocks,
        seqs=seqs,
        budget=max(budget, seqs),
        caching=caching,
        reserve_whole_prompt=reserve,
        watermark=watermark,
    )
    world = World(scheduler)
    everything: list[Sequence] = []
    gone: list[Sequence] = []

    def run(steps: int) -> None:
        for _ in range(steps):
            before = {id(seq): seq.computed for seq in scheduler.running}
            plan = scheduler.schedule()
            batch = plan.batch
            assert batch.decode_seqs + batch.prefill_tokens <= scheduler.limits.max_num_batched_tokens
            assert len(scheduler.running) <= seqs
            assert len({id(seq) for seq in plan.sampling}) == len(plan.sampling)
            world.compute(before)
            world.check()
            hand_out(scheduler, plan)
            world.check()

    for kind, value in events:
        if kind == "arrive":
            length, tokens, prompt = value
            seq = sequence([prompt] * length, tokens)
            everything.append(seq)
            scheduler.add(seq)
        elif kind == "leave" and everything:
            seq = everything[value % len(everything)]
            if not seq.finished:
                gone.append(seq)
            scheduler.remove(seq)
            world.check()
        elif kind == "step":
            run(value)
    steps = 0
    while scheduler.has_work():
        run(1)
        steps += 1
        assert steps < 5000, "it doesn't end"
    assert scheduler.cache.in_use == 0
    for seq in everything:
        if seq not in gone:
            assert seq.generated == seq.max_tokens


@pytest.mark.parametrize("caching", [True, False])
def test_usage_is_a_share(caching: bool) -> None:
    cache = KVCache(11, 16, prefix_caching=caching)
    seq = sequence([1] * 32, 1)
    assert cache.admit(seq, [], 32, whole=True, headroom=0)
    assert cache.usage == pytest.approx(0.2)
    assert not cache.extend(seq, 16 * 11)
    assert cache.usage == pytest.approx(0.2)
