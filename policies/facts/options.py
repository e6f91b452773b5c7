"""A command line as the engine's own parser would take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from srvmod.policies.facts.values import Fact, Known, Maybe, Place, Unknown

Value: TypeAlias = str | int | float | bool | tuple[str, ...] | None
"""An option's value. JSON options keep their text."""


@dataclass(frozen=True, slots=True)
class Misuse:
    """A word that the pinned version's parser refuses, or that it takes to mean something else than it says."""

    kind: str
    """`unknown`, `removed`, `ambiguous`, `choice`, `type`, `missing-value`, `repeated`, `unexpected`."""
    word: str
    problem: str
    allowed: str
    place: Place


@dataclass(frozen=True, slots=True)
class CommandLine:
    """Options by their destination name (`tensor_parallel_size`), as given; defaults are in `version`'s table."""

    place: Place
    version: str
    given: Mapping[str, Fact[Value]]
    model: Maybe[str] = None
    misuses: tuple[Misuse, ...] = ()
    unknowns: tuple[Unknown, ...] = ()
    """Words that can't be established: any option may be among them."""
    defaults: Mapping[str, Value] = field(default_factory=dict[str, Value])

    def option(self, name: str) -> Maybe[Value]:
        """What the line gives for a destination name; Unknown where a word that can't be read may give it."""
        found = self.given.get(name)
        if found is None and self.unknowns:
            return self.unknowns[0]
        return found

    def number(self, name: str) -> Maybe[int | float]:
        """A numeric option as given."""
        found = self.option(name)
        if found is None or isinstance(found, Unknown):
            return found
        if isinstance(found.value, int | float) and not isinstance(found.value, bool):
            return Known(found.value, found.place, found.text)
        return Unknown(f"{found.text or found.value!r} isn't a number", found.place)

    def integer(self, name: str) -> Maybe[int]:
        """A whole number as given."""
        found = self.number(name)
        if found is None or isinstance(found, Unknown):
            return found
        if float(found.value).is_integer():
            return Known(int(found.value), found.place, found.text)
        return Unknown(f"{found.text} isn't a whole number", found.place)

    def switch(self, name: str) -> Maybe[bool]:
        """A switch as given."""
        found = self.option(name)
        if found is None or isinstance(found, Unknown):
            return found
        return Known(bool(found.value), found.place, found.text)

    def string(self, name: str) -> Maybe[str]:
        """A text option as given."""
        found = self.option(name)
        if found is None or isinstance(found, Unknown):
            return found
        return Known("" if found.value is None else str(found.value), found.place, found.text)
