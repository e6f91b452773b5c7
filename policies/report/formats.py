"""The formats of `srvmod check --format`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from srvmod.policies.check import Result
from srvmod.policies.report import machine, text

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e]")
"""Control characters other than tab and line feed, halves of surrogate pairs, and what turns the direction of text."""
FORMATS: Mapping[str, Callable[[Result], str]] = {
    "text": text.render,
    "github": machine.as_github,
    "sarif": machine.as_sarif,
    "junit": machine.as_junit,
    "json": machine.as_json,
}
"""Name → report."""


def render(result: Result, name: str) -> str:
    """The report of a result in a format. What the input holds can't steer a terminal or a log, nor fail to encode."""
    return UNPRINTABLE.sub(lambda found: f"\\x{ord(found[0]):02x}", FORMATS[name](result))
