"""One sequence (one choice of one request) on its way through the engine."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from srvmod_engine.tokens import Answer

Writer = Callable[[bytes], bool]
"""Sends bytes to a client at once; False when it reads too slowly and wants to be asked before."""


def nowhere(_: bytes) -> bool:
    """The writer of a sequence that has none."""
    return False


class Sink(Protocol):
    """Where a sequence's tokens go: a stream to a client, or a collector."""

    def token(self, token: int, text: str, finish_reason: str | None) -> None:
        """One token; the last one carries the finish reason (`stop` or `length`)."""
        ...

    def events(self, start: int, end: int) -> list[bytes]:
        """Tokens from number `start` to before `end` as bytes for `writer`; none when they must go through `token`.

        Made while a step runs, so that as little work as possible stands between its end and the client.
        """
        ...

    def writer(self) -> Writer:
        """What sends the bytes that `events` made."""
        ...

    def aborted(self) -> None:
        """The engine gave the sequence up (shutdown); no more tokens follow."""
        ...


@dataclass(slots=True)
class Group:
    """The choices of one prompt; vLLM records `n` and the longest answer once for all of them."""

    n: int
    open: int
    longest: int = 0
    enters: float | None = None
    """When the scheduler sees it, seconds of the engine's clock; None before that is decided."""


@dataclass(slots=True, eq=False)
class Sequence:
    """State that the scheduler keeps. Times are seconds of the engine's clock."""

    prompt: list[int]
    answer: Answer
    sink: Sink
    max_tokens: int
    arrival: float
    group: Group
    generated: int = 0
    """Tokens of the answer that were handed out."""
    computed: int = 0
    """Tokens whose KV is in the cache, those of the step in progress included."""
    target: int = 0
    """Tokens that must be computed before the next one can be sampled."""
    blocks: list[int] = field(default_factory=list)
    """Its KV blocks, in order."""
    room: int = 0
    """Tokens that its blocks hold."""
    named: int = 0
    """Leading blocks that the prefix cache knows."""
    contents: list[bytes] = field(default_factory=list)
    """Hashes of its full blocks, as far as they were needed."""
    cached_prompt: int = 0
    """Prompt tokens found in the prefix cache when first scheduled."""
    preemptions: int = 0
    queued: float = 0.0
    """When it came to the scheduler; the front end had it from `arrival` to here."""
    scheduled: float = 0.0
    first_token: float = 0.0
    last_token: float = 0.0
    ready: list[bytes] = field(default_factory=list)
    """Its next events, the last one first."""
    write: Writer = nowhere
    running: bool = False
    finished: bool = False

    @property
    def length(self) -> int:
        """Prompt and output so far, tokens."""
        return len(self.prompt) + self.generated

    def tokens(self, start: int, end: int) -> list[int]:
        """Tokens of prompt and output together."""
        prompt = len(self.prompt)
        if end <= prompt:
            return self.prompt[start:end]
        return self.prompt[start:] + self.answer.ids(max(0, start - prompt), end - prompt)

    def output(self) -> list[int]:
        """The answer's tokens so far."""
        return self.answer.ids(0, self.generated)
