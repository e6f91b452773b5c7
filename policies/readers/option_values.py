"""Values of options, converted as the engine's parser converts them."""

from __future__ import annotations

import json
import re

from srvmod.policies.engine_versions import Option
from srvmod.policies.facts import Value

SIZE = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])?")
WHOLE = re.compile(r"\s*[+-]?\d+(_\d+)*\s*")
"""What Python's int() takes."""
DECIMAL = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
MOST_DIGITS = 18
MOST_SHOWN = 8

Problem = tuple[str, str]
"""What is wrong, and what is allowed."""


def size(text: str) -> int | None:
    """`8k` is 8000 and `8K` is 8192; None where it isn't a size."""
    if len(text) > MOST_DIGITS:
        return None
    if WHOLE.fullmatch(text):
        return int(text)
    match = SIZE.fullmatch(text.strip())
    if match is None:
        return None
    number, suffix = match.groups()
    if suffix in DECIMAL:
        return int(float(number) * DECIMAL[suffix])
    if "." in number:
        return None
    return int(number) * BINARY.get(suffix or "", 1)


def convert(option: Option, text: str) -> tuple[Value, Problem | None]:
    """(value, None), or (None, what is wrong)."""
    if option.optional and text in {"", "None"}:
        return None, None
    value, problem = _typed(option, text)
    if problem is None and option.choices and str(value) not in option.choices:
        shown = ", ".join(option.choices[:MOST_SHOWN]) + (", …" if len(option.choices) > MOST_SHOWN else "")
        return None, (f"{text!r} isn't one of the choices", f"one of {shown}")
    return value, problem


def _typed(option: Option, text: str) -> tuple[Value, Problem | None]:  # noqa: PLR0911 - one per type
    kind = option.type
    if kind == "int":
        if WHOLE.fullmatch(text) and len(text) <= MOST_DIGITS:
            return int(text), None
        return None, (f"{text!r} isn't a whole number", "a whole number without suffix")
    if kind == "float":
        try:
            return float(text), None
        except ValueError:
            return None, (f"{text!r} isn't a number", "a number")
    if kind in {"size", "size-or-auto"}:
        if kind == "size-or-auto" and text.strip().lower() in {"auto", "-1"}:
            return -1, None
        found = size(text)
        if found is None:
            return None, (f"{text!r} isn't a size", "a whole number such as 8192, 8k (8000) or 8K (8192)")
        return found, None
    if kind == "json":
        try:
            json.loads(text)
        except (json.JSONDecodeError, RecursionError):
            return None, (f"{text[:60]!r} isn't JSON", "JSON")
    return text, None
