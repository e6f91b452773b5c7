"""Words that a shell keeps for itself, and variables that its builtins write, whose values nobody reads here."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from srvmod.policies.readers.shell_lexer import Lexeme

OPENING = {"if", "for", "while", "until", "case", "select"}
CLOSING = {"fi", "done", "esac"}
BETWEEN = {"then", "else", "elif", "do", "{", "}", "!", "time", "function", "in"}
REDIRECTIONS = {">", ">>", "<", "<<", "<<-", "&>", "&>>", ">&", "<&"}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ARITHMETIC = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*(?:\+\+|--|(?:<<|>>|[-+*/%&|^])?=(?!=))")
"""An assignment in `let` or `(( ))`, whose value this reader doesn't compute."""
READERS = {"read": 0, "mapfile": 0, "readarray": 0, "getopts": 1}
"""Builtins that write the variables that they name, and how many words stand before those."""
LOOPS = {"for", "select"}


def written(lexemes: Sequence[Lexeme]) -> Iterator[str]:
    """Names that a simple command, or the head of a loop, writes otherwise than by `NAME=value`."""
    texts = [one.bare for one in lexemes]
    if not texts:
        return
    first, rest = texts[0], texts[1:]
    if first in LOOPS:
        yield from (name for name in rest[:1] if NAME.fullmatch(name))
    elif first in READERS:
        names = [text for text in rest if not text.startswith("-")][READERS[first] :]
        yield from (name for name in names if NAME.fullmatch(name))
    elif first == "printf":
        yield from (name for flag, name in pairwise(rest) if flag == "-v")
    elif first == "let":
        yield from (match[1] for text in rest if (match := ARITHMETIC.match(text)))
    elif match := ARITHMETIC.match(" ".join(texts[:2])):
        yield match[1]
