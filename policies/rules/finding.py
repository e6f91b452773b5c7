"""What a rule finds, and what every rule gets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from srvmod.contract import Clause
from srvmod.policies.config import Config
from srvmod.policies.facts import Place, Unknown, World


class Topic(StrEnum):
    """Findings that no clause of the specification names, but that break what the clauses want."""

    ENGINE_VERSION = "ENGINE-VERSION"
    OPERATIONS = "OPERATIONS"


class Severity(StrEnum):
    """How a finding counts."""

    ERROR = "error"
    """The clause is broken."""
    UNKNOWN = "unknown"
    """Whether it is broken can't be told from the input."""
    WARNING = "warning"
    """Allowed, but it costs something."""
    NOTE = "note"
    """Not judged, and why."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or can't be told."""

    clause: Clause | Topic
    rule: str
    """Which rule found it, such as `tensor-parallel`; stable, for levels and reports."""
    severity: Severity
    place: Place
    what: str
    """With the value that was found."""
    why: str
    fix: str


Rule: TypeAlias = Callable[[World, Config], Iterator[Finding]]
"""A pure function from facts to findings."""


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes a rule's findings."""

    clause: Clause | Topic
    rule: str
    why: str

    def error(self, place: Place, what: str, fix: str) -> Finding:
        """The clause is broken."""
        return Finding(self.clause, self.rule, Severity.ERROR, place, what, self.why, fix)

    def warning(self, place: Place, what: str, fix: str) -> Finding:
        """Allowed, with a price."""
        return Finding(self.clause, self.rule, Severity.WARNING, place, what, self.why, fix)

    def note(self, place: Place, what: str, fix: str = "") -> Finding:
        """Not judged."""
        return Finding(self.clause, self.rule, Severity.NOTE, place, what, self.why, fix)

    def unknown(self, subject: str, unknown: Unknown, fix: str = "write it as a plain value") -> Finding:
        """The clause can't be judged."""
        what = f"{subject} can't be told: {unknown.reason}"
        return Finding(self.clause, self.rule, Severity.UNKNOWN, unknown.place, what, self.why, fix)
