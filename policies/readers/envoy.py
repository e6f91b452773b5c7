"""Envoy's own configuration wherever it stands: filters that hold bodies back, compress events or cut streams."""

from __future__ import annotations

import re
from collections.abc import Iterator

from srvmod.policies.facts import Known, Setting
from srvmod.policies.readers.tree import Cursor, Mapping, Sequence

MOST_LOOKED_AT = 50_000
TOPICS = {
    "response_body_mode": "ext-proc-body",
    "stream_idle_timeout": "stream-idle-timeout",
    "max_stream_duration": "max-stream-duration",
    "per_try_timeout": "retry-timeout",
}
"""Fields that mean the same wherever they stand."""
ROUTE_TOPICS = {"timeout": "request-timeout", "idle_timeout": "stream-idle-timeout"}
"""Fields of a route's action."""
LUA = {"inline_code", "inline", "inline_string"}
READS_BODY = re.compile(r":\s*body\s*\(")
COMMENT = re.compile(r"--.*")


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
    kinds = {cursor[key].raw().rpartition(".")[2] for key in ("@type", "type_url")}
    for key, child in cursor.entries():
        name = snake(key)
        if name in TOPICS and (value := child.string()) is not None:
            yield Setting(TOPICS[name], value)
        elif name in LUA:
            yield from lua(child)
    if "Buffer" in kinds:
        yield Setting("buffering", Known("on", cursor.place, "envoy.filters.http.buffer"))
    if "Compressor" in kinds:
        yield from _compressor(cursor)
    if _is_route_action(cursor):
        for name, topic in ROUTE_TOPICS.items():
            value = cursor[name].string() or cursor[camel(name)].string()
            if value is not None:
                yield Setting(topic, value)
    yield from _patch(cursor)


def _compressor(cursor: Cursor) -> Iterator[Setting]:
    for part in (cursor, cursor["value"]):
        for common in (part.at("response_direction_config", "common_config"), part):
            for item in common["content_type"].items():
                if "event-stream" in item.raw():
                    yield Setting("compression", Known(item.raw(), item.place))


def _is_route_action(cursor: Cursor) -> bool:
    if not isinstance(cursor.node, Mapping):
        return False
    leads = {"cluster", "weighted_clusters", "weightedClusters"} & cursor.node.entries.keys()
    path = cursor.place.path
    return path.endswith(".route") or bool(leads and (cursor["prefix_rewrite"] or "route" in path))


def _patch(cursor: Cursor) -> Iterator[Setting]:
    """A JSON patch of one field: its path names what the value is."""
    *above, last = [snake(part) for part in cursor["path"].raw().split("/")]
    value = cursor["value"].string()
    topic = TOPICS.get(last) or (ROUTE_TOPICS.get(last) if above[-1:] == ["route"] else None)
    if value is not None and topic is not None:
        yield Setting(topic, value)


def lua(cursor: Cursor) -> Iterator[Setting]:
    """A script that reads the response's body: Envoy gathers all of it before the script goes on."""
    text = "\n".join(COMMENT.sub("", line) for line in cursor.raw().splitlines())
    _, _, response = text.partition("envoy_on_response")
    if READS_BODY.search(response.partition("envoy_on_request")[0]):
        yield Setting("buffering", Known("on", cursor.place, "body() in envoy_on_response"))


def snake(key: str) -> str:
    """A field's name as Envoy's own files have it; JSON may spell it in camel case."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower()


def camel(key: str) -> str:
    """The other spelling."""
    first, *rest = key.split("_")
    return first + "".join(part.title() for part in rest)
