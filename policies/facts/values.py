"""A value with the place it came from, and the value that can't be established."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a fact was read.

    `source` is a file as it was named on the command line, "-" for standard input, or a Pulumi URN; `line` counts
    from 1 and is None where there are no lines; `object` is as in "Deployment serving/engine"; `path` is the field
    inside it, as in `spec.template.spec.containers[0].args[3]`.
    """

    source: str
    line: int | None = None
    object: str = ""
    path: str = ""

    def __str__(self) -> str:
        """`file:line`, or the URN."""
        return self.source if self.line is None else f"{self.source}:{self.line}"

    def at(self, line: int | None, path: str) -> Place:
        """Another field of the same object."""
        return Place(self.source, line, self.object, path)


@dataclass(frozen=True, slots=True)
class Known(Generic[T_co]):
    """An established value. `text` is how the input spells it, for messages."""

    value: T_co
    place: Place
    text: str = ""

    def __str__(self) -> str:
        """The input's own spelling, or the value."""
        return self.text or str(self.value)


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is said somewhere but can't be established from the input. Mandatory clauses fail closed on it."""

    reason: str
    place: Place


Fact: TypeAlias = Known[T_co] | Unknown
"""Established or not."""

Maybe: TypeAlias = Known[T_co] | Unknown | None
"""A fact, or None where the input says nothing and the default of whoever reads it holds."""
