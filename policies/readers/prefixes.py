"""`env` in front of a command: the variables that it sets and takes away, and the command behind it."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from srvmod.policies.facts import Fact, Known, Unknown
from srvmod.policies.readers.words import Word

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
WITH_VALUE = {"-u", "--unset", "-C", "--chdir"}


@dataclass(frozen=True, slots=True)
class Plain:
    """A command without `env`. Empty `assigned` and `removed`: it was taken as it is."""

    words: Sequence[Word]
    assigned: dict[str, Fact[str]] = field(default_factory=dict[str, "Fact[str]"])
    removed: frozenset[str] = frozenset()


def without_env(words: Sequence[Word]) -> Plain:
    """What `[exec] env [-u NAME] [-S TEXT] [NAME=VALUE…] COMMAND` sets, and its command."""
    start = 1 if words and words[0].text == "exec" else 0
    if start >= len(words) or words[start].text.rpartition("/")[2] != "env":
        return Plain(words)
    rest = list(words[start + 1 :])
    assigned: dict[str, Fact[str]] = {}
    removed: set[str] = set()
    while rest:
        text = rest[0].text
        match = ASSIGNMENT.fullmatch(text)
        if match:
            place = rest[0].place
            assigned[match[1]] = Unknown(rest[0].unknown, place) if rest[0].unknown else Known(match[2], place, text)
            rest = rest[1:]
        elif text in {"-S", "--split-string"} and len(rest) > 1:
            rest = [*_split(rest[1]), *rest[2:]]
        elif text in WITH_VALUE and len(rest) > 1:
            if text in {"-u", "--unset"}:
                removed.add(rest[1].text)
            rest = rest[2:]
        elif text.startswith("-"):
            name, _, value = text.partition("=")
            if name == "--unset" and value:
                removed.add(value)
            rest = rest[1:]
        else:
            break
    return Plain(rest, assigned, frozenset(removed))


def _split(word: Word) -> list[Word]:
    try:
        return [replace(word, text=one) for one in shlex.split(word.text)]
    except ValueError:
        return [replace(word, text="", unknown="env -S has quotes that don't end")]
