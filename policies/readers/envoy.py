"""Envoy's own configuration wherever it stands: filters that hold bodies back, compress events or cut streams."""

from __future__ import annotations

from collections.abc import Iterator

from srvmod.policies.facts import Known, Setting
from srvmod.policies.readers.tree import Cursor, Mapping, Sequence

MOST_LOOKED_AT = 50_000
BUFFERING = {"response_body_mode", "responseBodyMode"}


def settings_anywhere(root: Cursor) -> Iterator[Setting]:
    """Settings at any depth of a configuration."""
    stack, seen = [root], set[int]()
    while stack and len(seen) < MOST_LOOKED_AT:
        cursor = stack.pop()
        node = cursor.node
        if not isinstance(node, Mapping | Sequence) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Sequence):
            stack.extend(reversed(list(cursor.items())))
            continue
        yield from _of(cursor)
        stack.extend(child for _, child in reversed(list(cursor.entries())))


def _of(cursor: Cursor) -> Iterator[Setting]:
    kind = cursor["@type"].raw().rpartition(".")[2]
    for key in BUFFERING:
        mode = cursor[key].string()
        if mode is not None:
            yield Setting("ext-proc-body", mode)
    if kind == "Buffer":
        yield Setting("buffering", Known("on", cursor["@type"].place, "envoy.filters.http.buffer"))
    if kind == "Compressor":
        types = [
            item
            for common in (cursor.at("response_direction_config", "common_config"), cursor)
            for item in common["content_type"].items()
        ]
        for item in types:
            if "event-stream" in item.raw():
                yield Setting("compression", Known(item.raw(), item.place))
    if isinstance(cursor.node, Mapping) and (
        "cluster" in cursor.node.entries or "weighted_clusters" in cursor.node.entries
    ):
        timeout = cursor["timeout"].string()
        if timeout is not None and (cursor["prefix_rewrite"] or "route" in cursor.place.path):
            yield Setting("request-timeout", timeout)
        idle = cursor["idle_timeout"].string()
        if idle is not None and "route" in cursor.place.path:
            yield Setting("stream-idle-timeout", idle)
