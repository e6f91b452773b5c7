"""The table of cases: input, clause, verdict, reason. Every gate that judges manifests is tested with it.

A case takes the base (an engine and what surrounds it) and changes it, or brings its own `input`:

    name       unique, says what is special
    clause     the clause or topic that is judged; `rule` narrows it
    verdict    violation, ok, warning, cant-tell (can't be judged) or cant-read
    reason     why
    only       kinds of the base to keep (left out: all)
    flags      engine options to set (name: value; true: a bare flag; null: take it away)
    args       the container's arguments instead of the base's
    set        path: value; a path is Kind:field/field/0/field, Kind left out for the Deployment
    drop       paths to take away
    add        documents to add
    input      the whole text instead of the base
    config     configuration of the check
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

HERE = Path(__file__).parent
CASES = HERE / "cases"
DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
VERDICTS = {"violation", "ok", "warning", "cant-tell", "cant-read"}
BAD = {"violation", "cant-tell", "cant-read"}
KEYS = {
    "name", "clause", "rule", "verdict", "reason", "only", "flags", "args", "set", "drop", "add", "input", "config",
}  # fmt: skip


@dataclass(frozen=True)
class Case:
    """One row."""

    name: str
    clause: str
    verdict: str
    reason: str
    file: str
    rule: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    source: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def text(self) -> str:
        """What the gate gets: YAML documents, or the case's own text."""
        if "input" in self.source:
            return str(self.source["input"])
        return str(yaml.dump_all(self.documents(), Dumper=DUMPER, sort_keys=False))

    def documents(self) -> list[dict[str, Any]]:
        """The objects of a case without a text of its own."""
        return built(self.source)


@cache
def base() -> tuple[dict[str, Any], ...]:
    """The documents that cases change."""
    return tuple(yaml.load_all((HERE / "base.yaml").read_text(), Loader=LOADER))


def built(source: dict[str, Any]) -> list[dict[str, Any]]:
    """The base with a case's changes."""
    kinds = source.get("only")
    documents = [copy.deepcopy(one) for one in base() if kinds is None or one["kind"] in kinds]
    by_kind = {one["kind"]: one for one in documents}
    if "args" in source or "flags" in source:
        container = by_kind["Deployment"]["spec"]["template"]["spec"]["containers"][0]
        if "args" in source:
            container["args"] = source["args"]
        container["args"] = with_flags(container["args"], source.get("flags", {}))
    for path, value in source.get("set", {}).items():
        parent, key = _walk(by_kind, path)
        if isinstance(parent, list) and key == len(parent):
            parent.append(value)
        else:
            parent[key] = value
    for path in source.get("drop", []):
        parent, key = _walk(by_kind, path)
        del parent[key]
    added = source.get("add", "")
    return [*documents, *(one for one in yaml.load_all(added, Loader=LOADER) if one)]


def with_flags(args: list[str], flags: dict[str, Any]) -> list[str]:
    """Arguments with some options changed, added or taken away."""
    kept = [arg for arg in args if arg.partition("=")[0] not in flags]
    for flag, value in flags.items():
        if value is True:
            kept.append(flag)
        elif value is not None:
            kept.append(f"{flag}={value}")
    return kept


def _walk(by_kind: dict[str, Any], path: str) -> tuple[Any, Any]:
    kind, _, fields = path.rpartition(":") if ":" in path.partition("/")[0] else ("Deployment", "", path)
    keys = [int(part) if part.isdigit() else part.replace("~", "/") for part in fields.split("/")]
    node: Any = by_kind[kind]
    for key in keys[:-1]:
        node = node[key] if isinstance(node, list) else node.setdefault(key, {})
    return node, keys[-1]


@cache
def cases() -> tuple[Case, ...]:
    """Every row, from every file."""
    rows: list[Case] = []
    for file in sorted(CASES.glob("*.yaml")):
        for source in yaml.load(file.read_text(), Loader=LOADER):
            unknown = set(source) - KEYS
            assert not unknown, f"{file.name}: {source.get('name')}: unknown keys {unknown}"
            assert source["verdict"] in VERDICTS, f"{file.name}: {source['name']}: {source['verdict']}"
            rows.append(
                Case(
                    name=source["name"],
                    clause=source["clause"],
                    verdict=source["verdict"],
                    reason=source["reason"],
                    file=file.stem,
                    rule=source.get("rule", ""),
                    config=source.get("config", {}),
                    source=source,
                )
            )
    return tuple(rows)
