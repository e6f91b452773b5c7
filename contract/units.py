"""Quantities that must not be mixed: each is a float of its own type, so a type checker refuses ms for s."""

from typing import NewType

Seconds = NewType("Seconds", float)
Milliseconds = NewType("Milliseconds", float)
Bytes = NewType("Bytes", float)
BytesPerSecond = NewType("BytesPerSecond", float)
Flops = NewType("Flops", float)
"""Floating-point operations per second."""

KIB = 1024
MIB = 1024**2
GIB = 1024**3
GB = 10**9
TIB = 1024**4


def to_milliseconds(seconds: Seconds) -> Milliseconds:
    """Seconds as milliseconds."""
    return Milliseconds(seconds * 1e3)


def to_seconds(milliseconds: Milliseconds) -> Seconds:
    """Milliseconds as seconds."""
    return Seconds(milliseconds / 1e3)
