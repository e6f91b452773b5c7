"""What a claim is: a sentence of the specification with its clause, its place and the verdict on it."""

from dataclasses import dataclass
from typing import Generic, TypeVar

from srvmod.contract.words import Clause, Unit, Verdict

SPECIFICATION = "SRVMOD-FIN-001"

Value = TypeVar("Value", int, float)


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A checkable sentence of the specification.

    `quote` is verbatim and `section` the heading above it, in specification SRVMOD-FIN-001. `why` says why the
    verdict is what it is. How it was judged and under what condition it holds is in `contract.judgements`; what the
    capacity model has to say about it is computed by `capacity.evidence`, so that no figure of it is written down.
    """

    id: str
    clause: Clause
    section: str
    quote: str
    verdict: Verdict
    why: str


@dataclass(frozen=True, kw_only=True)
class Number(Claim, Generic[Value]):
    """A claim with a number: the one place where the product takes it from."""

    value: Value
    unit: Unit

    def __str__(self) -> str:
        """Value and unit, as in "30 ms"."""
        return f"{self.value:,} {self.unit.value}"
