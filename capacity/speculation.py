"""Speculative decoding (DEC-SRVMOD-01): what a draft model does to an engine's speed, by number of sessions.

The draft model proposes `tokens` tokens one after another; the large model then checks them all in one step. Of the
proposals a share `acceptance` is taken, each only if all before it were. Sources of acceptance and of what is seen in
practice: docs/capacity.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from srvmod.capacity.layout import CapacityError, Layout
from srvmod.capacity.steptime import StepModel, Work
from srvmod.contract import (
    DRAFT_TOKENS_PER_SECOND_PER_SESSION,
    LLAMA_3_2_1B,
    Milliseconds,
    ModelShape,
    Seconds,
    to_milliseconds,
)

ACCEPTANCE: Final = 0.7
"""Share of a small draft model's proposals that are taken; assumed, between the 0.6 and 0.8 of published reports."""
TARGET_MS: Final = Milliseconds(1e3 / DRAFT_TOKENS_PER_SECOND_PER_SESSION.value)
"""45 tokens per second and session as a gap."""
DRAFT_TOKENS: Final = (1, 2, 3, 4, 5)
BATCHES: Final = (1, 8, 16, 32, 64, 96, 128, 192, 256, 325, 650)


@dataclass(frozen=True)
class Speculation:
    """One batch size without and with the best number of draft tokens; `tokens` is 0 where none is faster."""

    sessions: int
    plain_ms: Milliseconds
    drafted_ms: Milliseconds
    """Mean time per token with `tokens` drafts, or with one where none helps."""
    tokens: int

    @property
    def speedup(self) -> float:
        """How many times faster than without; below 1 it is slower."""
        return self.plain_ms / self.drafted_ms

    @property
    def reaches_target(self) -> bool:
        """Whether the better way reaches 45 tokens per second and session."""
        return min(self.plain_ms, self.drafted_ms) <= TARGET_MS


def accepted(acceptance: float, tokens: int) -> float:
    """Tokens that a step yields: the large model's own, and those drafts that were taken."""
    if not 0 <= acceptance < 1:
        raise CapacityError("acceptance", acceptance, "isn't a share", "0 or more, less than 1")
    return sum(acceptance**count for count in range(tokens + 1))


def speculate(
    model: ModelShape,
    layout: Layout,
    sessions: int,
    *,
    context: float,
    acceptance: float = ACCEPTANCE,
    draft: ModelShape = LLAMA_3_2_1B,
) -> Speculation:
    """Decoding without prompts at a number of sessions, without drafts and with the best number of them."""
    large, small = StepModel(model, layout), StepModel(draft, layout)
    work = Work(sessions, sessions * context)
    plain = large.seconds(work)
    one = small.seconds(work)
    best_tokens, best = 0, Seconds(float("inf"))
    for tokens in DRAFT_TOKENS:
        # The checked drafts are rows of the matrix products and of the output head; the KV cache is read once.
        check = Work(sessions, sessions * context, prefill=sessions * tokens, prompts=sessions * tokens)
        time = (large.seconds(check) + tokens * one) / accepted(acceptance, tokens)
        if time < best:
            best_tokens, best = tokens, Seconds(time)
    return Speculation(sessions, to_milliseconds(plain), to_milliseconds(best), best_tokens if best < plain else 0)


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


def break_even(model: ModelShape, layout: Layout, context: float) -> int:
    """Most sessions per engine up to which some number of drafts is faster than none."""
    low, high = 0, 2_048
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if speculate(model, layout, middle, context=context).tokens else (low, middle)
    return low
