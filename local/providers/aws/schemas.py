"""AWS's own resource schemas (from the package cfn-lint): what replaces, and which values are allowed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


class SchemaMissingError(Exception):
    """cfn-lint or a schema in it isn't there."""


@lru_cache(1)
def _folder() -> Path:
    found = find_spec("cfnlint")
    if found is None or not found.submodule_search_locations:
        raise SchemaMissingError("cfn-lint isn't installed: make puts it into .venv (moto[server] needs it)")
    return Path(found.submodule_search_locations[0]) / "data" / "schemas"


@lru_cache(1)
def _index() -> dict[str, str]:
    index: dict[str, str] = json.loads((_folder() / "providers" / "us-east-1.json").read_bytes())
    return index


@lru_cache
def schema(cfn: str) -> dict[str, Any]:
    """The schema of a CloudFormation type; SchemaMissingError for an unknown one."""
    name = _index().get(cfn)
    if name is None:
        raise SchemaMissingError(f"cfn-lint has no schema of {cfn}")
    found: dict[str, Any] = json.loads((_folder() / "resources" / f"{name}.json").read_bytes())
    return found


@lru_cache
def create_only(cfn: str) -> frozenset[str]:
    """Property paths (``KubernetesNetworkConfig/IpFamily``) whose change needs a new resource.

    Conditional ones are left out: AWS says of those that only some changes replace.
    """
    return frozenset(p.removeprefix("/properties/") for p in schema(cfn).get("createOnlyProperties", []))


def property_schema(cfn: str, path: str) -> dict[str, Any]:
    """The schema of the property at ``path`` (through lists and definitions); empty when there is none."""
    root = schema(cfn)
    current: dict[str, Any] = root
    for name in path.split("/"):
        current = _resolve(root, current)
        if "items" in current:
            current = _resolve(root, current["items"])
        current = current.get("properties", {}).get(name, {})
    return _resolve(root, current)


def _resolve(root: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        target: Any = root
        for part in str(node["$ref"]).removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node


def violations(cfn: str, path: str, value: Any) -> Iterator[str]:
    """What AWS's schema has against a known value. Values of another shape than the schema's say nothing."""
    rule = property_schema(cfn, path)
    if isinstance(value, list):
        for item in value:
            yield from _scalar(_resolve(schema(cfn), rule.get("items", {})), item)
    else:
        yield from _scalar(rule, value)


def _scalar(rule: dict[str, Any], value: Any) -> Iterator[str]:
    kinds = rule.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return
    if isinstance(value, str) and "string" in kinds:
        if "enum" in rule and value not in rule["enum"]:
            yield f"{value!r} isn't one of {', '.join(map(str, rule['enum']))}"
        if "pattern" in rule and not _matches(rule["pattern"], value):
            yield f"{value!r} doesn't match {rule['pattern']}"
        if not rule.get("minLength", 0) <= len(value) <= rule.get("maxLength", len(value)):
            yield f"its length {len(value)} isn't {rule.get('minLength', 0)} to {rule.get('maxLength', 'any')}"
    if isinstance(value, int | float) and {"integer", "number"} & set(kinds):
        if "enum" in rule and value not in rule["enum"]:
            yield f"{value} isn't one of {', '.join(map(str, rule['enum']))}"
        if not rule.get("minimum", value) <= value <= rule.get("maximum", value):
            yield f"{value} isn't {rule.get('minimum', 'any')} to {rule.get('maximum', 'any')}"


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:  # a pattern in a dialect that Python doesn't read
        return True
