"""Speculative decoding (DEC-SRVMOD-01): what a draft model does to an engine's speed, by number of sessions.

The draft model proposes `tokens` tokens one after another; the large model then checks them all in one step. Of the
proposals a share `acceptance` is taken, each only if all before it were. Sources of acceptance and of what is seen in
practice: docs/capacity.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Final

from srvmod.capacity.layout import CapacityError, Layout, Traffic
from srvmod.capacity.steptime import StepModel, Work
from srvmod.contract import (
    DRAFT_TOKENS_PER_SECOND_PER_SESSION,
    LLAMA_3_2_1B,
    LLAMA_3_70B,
    Milliseconds,
    ModelShape,
    Seconds,
    to_milliseconds,
)

ACCEPTANCE: Final = 0.7
"""Share of a small draft model's proposals that are taken; assumed, between the 0.6 and 0.8 of published reports."""
TARGET_MS: Final = Milliseconds(1e3 / DRAFT_TOKENS_PER_SECOND_PER_SESSION.value)
"""45 tokens per second and session as a gap."""
WORTH: Final = 1.05
"""Speed-up from which drafts count as worth it: less is within the error of the step times, and of `ACCEPTANCE`."""
MOST_DRAFT_TOKENS: Final = 5
BOUND_CONTEXT: Final = 768.0
"""Tokens per session at which the bound on drafting is taken: the middle of the mixes that claims are judged by."""
GRAIN: Final = 8
"""Batch sizes that a schedule decides together: CUDA graphs are captured in steps of as many."""
LOOKED_AT: Final = 512
"""Batch size up to which a plan tells whether drafting is worth it, also where the engine's own limit is lower."""
BATCHES: Final = (1, 8, 16, 32, 64, 96, 128, 192, 256, 325, 650)


@dataclass(frozen=True)
class Prompts:
    """Prompts that are computed beside decoding: tokens of each, and tokens per token that is generated."""

    tokens: float
    per_output_token: float


NO_PROMPTS: Final = Prompts(0.0, 0.0)


@dataclass(frozen=True)
class Speculation:
    """One batch size without and with the best number of draft tokens; `tokens` is 0 where none is worth it."""

    sessions: int
    plain_ms: Milliseconds
    drafted_ms: Milliseconds
    """Mean time per token with `tokens` drafts, or with one where none helps."""
    tokens: int

    @property
    def speedup(self) -> float:
        """How many times faster than without; below 1 it is slower."""
        return self.plain_ms / self.drafted_ms


def accepted(acceptance: float, tokens: int) -> float:
    """Tokens that a step yields: the large model's own, and those drafts that were taken."""
    if not 0 <= acceptance < 1:
        raise CapacityError("acceptance", acceptance, "isn't a share", "0 or more, less than 1")
    return sum(acceptance**count for count in range(tokens + 1))


class Drafter(StrEnum):
    """What proposes tokens; the value is vLLM's name of the method."""

    MODEL = "draft_model"
    """A small model of the same vocabulary."""
    EAGLE_3 = "eagle3"
    """One layer trained on the large model's hidden states."""


def drafter_shape(drafter: Drafter, model: ModelShape) -> ModelShape:
    """The shape that proposes: Llama 3.2 1B, or one layer of the large model with embedding and output head.

    An EAGLE-3 head is assumed to have the large model's widths and vocabulary and tables of its own. Trained ones may
    have a smaller vocabulary or share the tables, which takes less memory and time than is counted here.
    """
    if drafter is Drafter.MODEL:
        return LLAMA_3_2_1B
    return replace(model, id=f"an EAGLE-3 layer of {model.id}", layers=1)


def speculate(
    model: ModelShape,
    layout: Layout,
    sessions: int,
    *,
    context: float,
    acceptance: float = ACCEPTANCE,
    draft: ModelShape = LLAMA_3_2_1B,
    prompts: Prompts = NO_PROMPTS,
    most_tokens: int = MOST_DRAFT_TOKENS,
) -> Speculation:
    """Decoding at a number of sessions, without drafts and with the best number of them.

    `prompts` are computed in the same steps; a step that yields more tokens has more of them.
    """
    large, small = StepModel(model, layout), StepModel(draft, layout.of_draft)
    one = small.seconds(Work(sessions, sessions * context))
    plain = large.seconds(_checked(sessions, context, 0, prompts.per_output_token * sessions, prompts))
    best_tokens, best = 0, Seconds(float("inf"))
    for tokens in range(1, most_tokens + 1):
        taken = accepted(acceptance, tokens)
        check = _checked(sessions, context, tokens, prompts.per_output_token * sessions * taken, prompts)
        time = (large.seconds(check) + tokens * one) / taken
        if time < best:
            best_tokens, best = tokens, Seconds(time)
    pays = plain / best >= WORTH
    return Speculation(sessions, to_milliseconds(plain), to_milliseconds(best), best_tokens if pays else 0)


def _checked(sessions: int, context: float, tokens: int, prefill: float, prompts: Prompts) -> Work:
    """A step that checks drafts: they are rows of the matrix products and of the output head, the KV cache is read
    once; and prompt tokens beside them."""
    rows = sessions * tokens
    begun = prefill / prompts.tokens if prompts.tokens else 0.0
    return Work(
        sessions,
        sessions * context,
        prefill=rows + prefill,
        attention_pairs=prefill * prompts.tokens / 2,
        prompts=rows + begun,
    )


@dataclass(frozen=True)
class Batches:
    """A range of batch sizes, both ends within it, and how many tokens are drafted in it."""

    first: int
    last: int
    tokens: int


@dataclass(frozen=True)
class Drafting:
    """How drafting is set up: what drafts, how many tokens at most, and the share of them that is taken."""

    drafter: Drafter = Drafter.MODEL
    most_tokens: int = 3
    acceptance: float = ACCEPTANCE


def drafted(model: ModelShape, layout: Layout, traffic: Traffic, sessions: int, drafting: Drafting) -> Speculation:
    """One batch size of a traffic mix, its prompts beside it, without and with the best number of drafts."""
    return speculate(
        model,
        layout,
        sessions,
        context=traffic.mean_context,
        acceptance=drafting.acceptance,
        draft=drafter_shape(drafting.drafter, model),
        prompts=Prompts(traffic.computed_prompt, traffic.prefill_per_output_token),
        most_tokens=drafting.most_tokens,
    )


def schedule(
    model: ModelShape, layout: Layout, traffic: Traffic, drafting: Drafting, *, most_sequences: int
) -> tuple[Batches, ...]:
    """The best number of drafts for every batch size up to the sequence limit, for a traffic mix; 0 where none pays,
    and in any case beyond `draft_bound`.

    Once a larger batch drafts fewer, no still larger one drafts more. Raises CapacityError for a share of drafts that
    isn't one.
    """
    found: list[Batches] = []
    most = drafting.most_tokens
    for first in range(1, most_sequences + 1, GRAIN):
        last = min(first + GRAIN - 1, most_sequences)
        if last > draft_bound():
            most = 0
        if most:
            most = drafted(model, layout, traffic, last, replace(drafting, most_tokens=most)).tokens
        if found and found[-1].tokens == most:
            found[-1] = replace(found[-1], last=last)
        else:
            found.append(Batches(first, last, most))
    return tuple(found)


def by_batch(model: ModelShape, layout: Layout, context: float, batches: Sequence[int] = BATCHES) -> list[Speculation]:
    """The answer to DEC-SRVMOD-01: one line per batch size."""
    return [speculate(model, layout, sessions, context=context) for sessions in batches]


def most_sessions(model: ModelShape, layout: Layout, context: float, *, drafting: bool) -> int:
    """Most decoding sessions of one engine that still reach the target; 0 when one alone doesn't."""

    def reaches(sessions: int) -> bool:
        found = speculate(model, layout, sessions, context=context)
        return (found.drafted_ms if drafting else found.plain_ms) <= TARGET_MS

    low, high = 0, 1
    while high < 4_096 and reaches(high):
        low, high = high, high * 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if reaches(middle) else (low, middle)
    return low


@cache
def draft_bound() -> int:
    """Most sequences of a batch in which engines of the specification may draft: where it stops being worth it.

    The program's schedules and the policies keep to it, whatever the traffic.
    """
    return break_even(LLAMA_3_70B, Layout(), BOUND_CONTEXT) // GRAIN * GRAIN


def break_even(model: ModelShape, layout: Layout, context: float) -> int:
    """Most sessions per engine up to which some number of drafts is worth it."""
    low, high = 0, 2_048
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if speculate(model, layout, middle, context=context).tokens else (low, middle)
    return low
