"""Words of a command line with their places."""

from __future__ import annotations

from dataclasses import dataclass

from srvmod.policies.facts import Place


@dataclass(frozen=True, slots=True)
class Word:
    """One word as the program would get it. `unknown` says why its text isn't established."""

    text: str
    place: Place
    unknown: str = ""
