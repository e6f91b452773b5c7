"""The formats of `srvmod check --format`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from srvmod.policies.check import Result
from srvmod.policies.report import text

FORMATS: Mapping[str, Callable[[Result], str]] = {"text": text.render}
"""Name → report."""


def render(result: Result, name: str) -> str:
    """The report of a result in a format."""
    return FORMATS[name](result)
