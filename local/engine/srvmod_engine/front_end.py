"""What lies between a client and the scheduler: HTTP, tokenizing, queues between processes, steps planned ahead.

Nothing of that is imitated part by part. Measured servers give a first token a number of mean steps later than the
steps of its own prompt take, and that wait is calibrated with its spread (the capacity room's first_token). Waiting
for the step in progress and for other prompts is part of it and happens here by itself, for as long as the sequences
before had to. The rest is what a new sequence is held for before the scheduler sees it. Servers that do nothing else
show no such wait, so nobody is held in front of an idle engine.
"""

import heapq
import math
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from srvmod_engine.sequence import Sequence

_HALF: Final = 0.5
"""Steps that a sequence waits in the mean for the step in progress, when steps are alike."""
_AS_MANY: Final = 8
"""Sequences that this counts as much as, beside those that were seen."""
_REMEMBERED: Final = 64
"""Steps, and sequences, over which means are taken, about."""


@dataclass(frozen=True)
class Wait:
    """A lognormal number of mean steps: its median, and the standard deviation of its logarithm."""

    median: float
    spread: float

    def draw(self, source: random.Random) -> float:
        """One of them."""
        return self.median * math.exp(self.spread * source.gauss(0.0, 1.0))


class FrontEnd:
    """Sequences on their way to the scheduler."""

    def __init__(self, wait: Wait | None, seed: int) -> None:
        """Hold for `wait`; nobody when it is None. The same seed and arrivals give the same waits."""
        self._wait = wait
        self._random = random.Random(seed)
        self._held: list[tuple[float, int, Sequence]] = []
        self._number = 0
        self.idle()

    def __len__(self) -> int:
        """How many are held."""
        return len(self._held)

    def __iter__(self) -> Iterator[Sequence]:
        """Those held, in no order."""
        return (seq for _, _, seq in self._held)

    def stepped(self, seconds: float) -> None:
        """A step of this length begins."""
        self._steps = min(self._steps + 1, _REMEMBERED)
        self._mean += (seconds - self._mean) / self._steps

    def scheduled(self, seq: Sequence, now: float) -> None:
        """The first step with this sequence begins: since it was let in, it waited for others."""
        if self._mean and seq.group.enters is not None:
            self._seen = min(self._seen + 1, _REMEMBERED)
            self._others += (max(0.0, now - seq.group.enters) / self._mean - self._others) / self._seen

    def idle(self) -> None:
        """The engine has nothing to do: what was before says nothing about what comes."""
        self._steps, self._mean = 0, 0.0
        self._seen, self._others = _AS_MANY, _HALF

    def hold(self, seq: Sequence, now: float) -> bool:
        """Keep a new sequence; False when it goes on at once. The choices of one prompt stay together."""
        group = seq.group
        if group.enters is None:
            steps = self._wait.draw(self._random) - self._others if self._wait is not None else 0.0
            group.enters = seq.arrival + max(0.0, steps) * self._mean
        if group.enters <= now:
            return False
        self._number += 1
        heapq.heappush(self._held, (group.enters, self._number, seq))
        return True

    def due(self, now: float) -> Iterator[Sequence]:
        """Let those go whose time has come, in that order."""
        while self._held and self._held[0][0] <= now:
            yield heapq.heappop(self._held)[2]

    def remove(self, seq: Sequence) -> bool:
        """Forget one; False when it isn't here."""
        left = [entry for entry in self._held if entry[2] is not seq]
        found = len(left) < len(self._held)
        if found:
            heapq.heapify(left)
            self._held = left
        return found
