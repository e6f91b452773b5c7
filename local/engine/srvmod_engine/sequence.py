"""One sequence (one choice of one request) on its way through the engine."""

from dataclasses import dataclass, field
from typing import Protocol

from srvmod_engine.tokens import Answer


class Sink(Protocol):
    """Where a sequence's tokens go: a stream to a client, or a collector."""

    def token(self, token: int, text: str, finish_reason: str | None) -> None:
        """One token; the last one carries the finish reason (`stop` or `length`)."""
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


@dataclass(slots=True, eq=False)
class Sequence:
    """State that the scheduler keeps. Times are seconds of the engine's clock."""

    prompt: list[int]
    answer: Answer
    sink: Sink
    max_tokens: int
    arrival: float
    group: Group
    output: list[int] = field(default_factory=list)
    computed: int = 0
    """Tokens whose KV is in the cache."""
    target: int = 0
    """Tokens that must be computed before the next one can be sampled."""
    shared_hashes: list[int] = field(default_factory=list)
    """Hashes of its full blocks that the prefix cache knows, in order."""
    private_blocks: int = 0
    cached_prompt: int = 0
    """Prompt tokens found in the prefix cache when first scheduled."""
    preemptions: int = 0
    scheduled: float = 0.0
    first_token: float = 0.0
    last_token: float = 0.0
    finished: bool = False

    @property
    def length(self) -> int:
        """Prompt and output so far, tokens."""
        return len(self.prompt) + len(self.output)
