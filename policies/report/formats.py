"""The formats of `srvmod check --format`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from srvmod.policies.check import Result
from srvmod.policies.report import machine, text

FORMATS: Mapping[str, Callable[[Result], str]] = {
    "text": text.render,
    "github": machine.as_github,
    "sarif": machine.as_sarif,
    "junit": machine.as_junit,
    "json": machine.as_json,
}
"""Name → report."""


def render(result: Result, name: str) -> str:
    """The report of a result in a format."""
    return FORMATS[name](result)
