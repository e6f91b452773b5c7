"""Nested values: one laid over another, cut to the shape of another, reached by a dotted path."""

from __future__ import annotations

from typing import Any

from srvmod.local.providers.values import Props


def over(found: Any, given: Any) -> Any:
    """What the program wrote over what was read; in blocks, key by key."""
    if isinstance(found, dict) and isinstance(given, dict):
        return {**found, **{k: over(found.get(k), v) for k, v in given.items()}}
    return given


def within(given: Any, found: Any) -> Any:
    """What was read, cut down to the keys that the program had written."""
    if isinstance(found, dict) and isinstance(given, dict):
        return {k: within(given[k], v) for k, v in found.items() if k in given}
    return found


def copy_at(path: list[str], old: Props, new: Props) -> None:
    for step in path[:-1]:
        old, new = old.get(step, {}), new.get(step, {})
    if path[-1] in old:
        new[path[-1]] = old[path[-1]]
    else:
        new.pop(path[-1], None)


def value_at(path: str, props: Any) -> Any:
    for step in path.split("."):
        props = props.get(step) if isinstance(props, dict) else None
    return props
