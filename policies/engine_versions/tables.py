"""Tables of engine versions, and looking things up in them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Literal, cast

DEFAULT_VERSION = "0.33.0"
"""The version that the program deploys."""
FILE = re.compile(r"vllm-(?P<version>[0-9][0-9A-Za-z.+-]*)\.json")
SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("_sum", "_count"), "counter": (), "gauge": ()}

Kind = Literal["value", "true", "switch", "append"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of the parser. `negative` are the flags that clear a switch; `hidden` ones aren't in its help."""

    dest: str
    flags: tuple[str, ...]
    negative: frozenset[str]
    kind: Kind
    type: str
    """`int`, `float`, `size` (8k is 8000, 8K is 8192), `size-or-auto`, `json` or `text`."""
    optional: bool
    """Whether the word None means no value."""
    nargs: str | None
    choices: tuple[str, ...]
    default: Any


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as the source names it."""

    name: str
    kind: str

    @property
    def exposed(self) -> frozenset[str]:
        """Names that /metrics shows: a counter gets `_total`, a histogram three suffixes."""
        if self.kind == "counter":
            base = self.name.removesuffix("_total")
            return frozenset({f"{base}_total", f"{base}_created"})
        if self.kind in {"histogram", "summary"}:
            return frozenset({*(self.name + suffix for suffix in SUFFIXES[self.kind]), f"{self.name}_created"})
        if self.kind == "gauge":
            return frozenset({self.name})
        return frozenset({self.name, *(self.name + s for s in ("_total", "_bucket", "_sum", "_count", "_created"))})


@dataclass(frozen=True, slots=True)
class Table:
    """What one version knows."""

    version: str
    source: str
    options: tuple[Option, ...]
    by_flag: Mapping[str, Option]
    by_dest: Mapping[str, Option]
    metrics: tuple[Metric, ...]
    exposed: frozenset[str]

    def long_flag(self, dest: str) -> str:
        """The option's usual flag."""
        option = self.by_dest.get(dest)
        return next((f for f in option.flags if f.startswith("--")), f"--{dest}") if option else f"--{dest}"


class VersionError(ValueError):
    """A version without a table."""


def versions() -> tuple[str, ...]:
    """Versions that have a table, oldest first."""
    names = (FILE.fullmatch(entry.name) for entry in resources.files(__package__ or "").joinpath("data").iterdir())
    found = [match["version"] for match in names if match]
    return tuple(sorted(found, key=lambda v: [int(part) if part.isdigit() else 0 for part in re.split(r"[.+-]", v)]))


@cache
def table(version: str = DEFAULT_VERSION) -> Table:
    """The table of a version. Raises VersionError naming those there are."""
    if version not in versions():
        raise VersionError(f"engine version {version}: no table; there are {', '.join(versions())}")
    text = resources.files(__package__ or "").joinpath("data", f"vllm-{version}.json").read_text(encoding="utf-8")
    data = cast("dict[str, Any]", json.loads(text))
    options = tuple(_option(one) for one in data["options"])
    metrics = tuple(Metric(one["name"], one["kind"]) for one in data["metrics"])
    return Table(
        version=data["version"],
        source=data["source"],
        options=options,
        by_flag={flag: option for option in options for flag in option.flags},
        by_dest={option.dest: option for option in options},
        metrics=metrics,
        exposed=frozenset(name for metric in metrics for name in metric.exposed),
    )


def _option(one: dict[str, Any]) -> Option:
    return Option(
        dest=one["dest"],
        flags=tuple(one["flags"]),
        negative=frozenset(one.get("negative", ())),
        kind=one["kind"],
        type=one.get("type", "text"),
        optional=one.get("optional", False),
        nargs=one.get("nargs"),
        choices=tuple(one.get("choices") or ()),
        default=one.get("default"),
    )
