"""Continuous batching and KV blocks, step by step without time."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from srvmod_engine.kv_cache import KVCache
from srvmod_engine.scheduler import Plan, Scheduler
from srvmod_engine.sequence import Group, Sequence
from srvmod_engine.tokens import Answer


class Nowhere:
    def token(self, token: int, text: str, finish_reason: str | None) -> None:
        raise AssertionError("the scheduler doesn't hand out tokens")

    def aborted(self) -> None:
        raise AssertionError("the scheduler doesn't hand out tokens")


def sequence(prompt: list[int], tokens: int) -> Sequence:
    answer = Answer(len(prompt), max_tokens=tokens, natural_length=10**6)
    return Sequence(prompt, answer, Nowhere(), tokens, 0.0, Group(1, 1))


def make(
    blocks: int = 100, *, seqs: int = 8, budget: int = 64, caching: bool = True, chunked: bool = True
) -> Scheduler:
    cache = KVCache(blocks, 16, prefix_caching=caching)
    return Scheduler(cache, max_seqs=seqs, max_tokens=budget, chunked_prefill=chunked)


def step(scheduler: Scheduler) -> tuple[Plan, list[Sequence]]:
    """One step; sequences that ended."""
    plan = scheduler.schedule()
    ended = []
    for seq in scheduler.complete(plan):
        seq.output.append(seq.answer.next()[0])
        if len(seq.output) >= seq.answer.stop.length:
            ended.append(seq)
    scheduler.finish(ended)
    return plan, ended


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
    while not second.output:
        before = len(first.output)
        plan, _ = step(scheduler)
        assert len(first.output) == before + 1, "decoding stalled"
        assert plan.batch.decode_seqs == 1
        chunks.append(plan.batch.prefill_tokens)
    assert chunks == [31, 31, 31, 7]


def test_without_chunked_prefill_a_prompt_waits_for_a_whole_step() -> None:
    scheduler = make(budget=32, chunked=False)
    scheduler.add(sequence([1] * 30, 5))
    scheduler.add(sequence([2] * 30, 5))
    plan, _ = step(scheduler)
    assert [count for _, count in plan.work] == [30]


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
    assert (len(first.output), len(second.output)) == (40, 40)
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
    again = sequence([*first.prompt, *first.output, 7], 1)
    scheduler.add(again)
    step(scheduler)
    # the last output token is never computed, so 55 of 56 tokens were: three whole blocks
    assert again.cached_prompt == 48


def test_idle_prefixes_give_way_to_new_requests() -> None:
    scheduler = make(blocks=8)
    scheduler.add(sequence(list(range(64)), 1))
    step(scheduler)
    assert scheduler.cache.available() == 8
    scheduler.add(sequence(list(range(1000, 1060)), 60))
    while scheduler.has_work():
        assert step(scheduler)[0].work
    again = sequence(list(range(64)), 1)
    scheduler.add(again)
    step(scheduler)
    assert again.cached_prompt < 48


_REQUESTS = st.lists(st.tuples(st.integers(1, 60), st.integers(1, 30), st.integers(0, 2)), min_size=1, max_size=12)


@settings(max_examples=60)
@given(
    _REQUESTS,
    st.integers(6, 40),
    st.integers(1, 5),
    st.integers(8, 64),
    st.booleans(),
    st.lists(st.integers(0, 60), max_size=4),
)
def test_everything_ends_and_no_block_is_lost(  # noqa: PLR0917 - hypothesis gives them by position
    requests: list[tuple[int, int, int]],
    blocks: int,
    seqs: int,
    budget: int,
    caching: bool,
    cancel_at: list[int],
) -> None:
    scheduler = make(blocks, seqs=seqs, budget=max(budget, seqs), caching=caching)
    waiting = [sequence([kind] * length, tokens) for length, tokens, kind in requests]
    everything = [*waiting]
    cancelled: set[int] = set()
    steps = 0
    while waiting or scheduler.has_work():
        if waiting and steps % 2 == 0:
            scheduler.add(waiting.pop())
        plan, _ = step(scheduler)
        steps += 1
        assert steps < 5000, "it doesn't end"
        assert sum(count for _, count in plan.work) <= scheduler.max_tokens
        assert len(scheduler.running) <= scheduler.max_seqs
        cache = scheduler.cache
        assert 0 <= cache.in_use <= cache.blocks
        assert cache._private == sum(seq.private_blocks for seq in scheduler.running)
        assert cache._private + len(cache._used) + len(cache._idle) <= cache.blocks
        for seq in scheduler.running:
            assert (len(seq.shared_hashes) + seq.private_blocks) * 16 >= seq.computed
        if steps in cancel_at and scheduler.running:
            victim = scheduler.running[0]
            cancelled.add(id(victim))
            scheduler.remove(victim)
    assert scheduler.cache.in_use == 0
    for seq in everything:
        if id(seq) not in cancelled:
            assert len(seq.output) == seq.max_tokens


@pytest.mark.parametrize("caching", [True, False])
def test_usage_is_a_share(caching: bool) -> None:
    cache = KVCache(10, 16, prefix_caching=caching)
    seq = sequence([1] * 32, 1)
    assert cache.grow(seq, 32)
    assert cache.usage == pytest.approx(0.2)
    assert not cache.grow(seq, 16 * 11)
    assert cache.usage == pytest.approx(0.2)
