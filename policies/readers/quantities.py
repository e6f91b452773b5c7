"""Kubernetes quantities and durations as numbers with their place."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TypeVar

from srvmod.policies.facts import Known, Maybe, Unknown
from srvmod.policies.readers.tree import Cursor

N = TypeVar("N", int, float)

QUANTITY = re.compile(r"([+-]?[0-9]*\.?[0-9]+)(?:[eE]([+-]?[0-9]{1,3})|([numkMGTPE]|[KMGTPE]i)?)")
FACTORS = {
    "": 1.0, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50, "Ei": 2.0**60,
}  # fmt: skip
DURATION = re.compile(r"([0-9]*\.?[0-9]+)(ns|us|µs|ms|s|m|h|d)")
UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def parse_quantity(text: str) -> float | None:
    """A quantity such as `4`, `500m`, `900Gi` or `4e0`; None where it isn't one."""
    match = QUANTITY.fullmatch(text.strip())
    if match is None or len(text) > 40:
        return None
    number, exponent, suffix = match.groups()
    return float(number) * (10.0 ** int(exponent) if exponent else FACTORS[suffix or ""])


def parse_duration(text: str) -> float | None:
    """Seconds of a Go or Gateway API duration such as `0s`, `1h30m`, `250ms`; a bare number is seconds."""
    text = text.strip()
    if len(text) > 40:
        return None
    if re.fullmatch(r"[0-9]*\.?[0-9]+", text):
        return float(text)
    position, seconds = 0, 0.0
    while position < len(text):
        match = DURATION.match(text, position)
        if match is None:
            return None
        seconds += float(match[1]) * UNITS[match[2]]
        position = match.end()
    return seconds if text else None


def _number(cursor: Cursor, parse: Callable[[str], float | None], what: str) -> Maybe[float]:
    found = cursor.string()
    if not isinstance(found, Known):
        return found
    value = parse(found.value)
    if value is None:
        return Unknown(f"{found.value!r} isn't {what}", cursor.place)
    return Known(value, cursor.place, found.value)


def quantity(cursor: Cursor) -> Maybe[float]:
    """A leaf's quantity."""
    return _number(cursor, parse_quantity, "a quantity")


def duration(cursor: Cursor) -> Maybe[float]:
    """A leaf's duration in seconds."""
    return _number(cursor, parse_duration, "a duration")


def whole(found: Maybe[float], factor: float = 1, *, fractions: bool = False) -> Maybe[int]:
    """A number times a factor as a whole one. A count of 3.5 devices stays unknown unless `fractions` rounds up."""
    if not isinstance(found, Known):
        return found
    value = found.value * factor
    if not fractions and not float(value).is_integer():
        return Unknown(f"{found.text} isn't a whole number", found.place)
    return Known(int(-(-value // 1)), found.place, found.text)
