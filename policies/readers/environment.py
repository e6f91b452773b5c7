"""Variables of a container, and the files that ConfigMaps of the same input put into it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from srvmod.policies.facts import Fact, Known, Place, Unknown
from srvmod.policies.readers.tree import Cursor
from srvmod.policies.readers.tree import Mapping as MappingNode
from srvmod.policies.readers.words import Word

REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
MOST_TEXT = 1_000_000
"""Characters that an expansion may grow to: variables that double each other are a bomb too."""


@dataclass
class ConfigMaps:
    """ConfigMaps of the input by (namespace, name)."""

    data: dict[tuple[str, str], Cursor] = field(default_factory=dict[tuple[str, str], Cursor])

    def add(self, namespace: str, name: str, data: Cursor) -> None:
        """Remember one."""
        self.data[namespace, name] = data

    def get(self, namespace: str, name: str) -> Cursor | None:
        """The data of one. An object without namespace is applied wherever the other is."""
        found = self.data.get((namespace, name)) or self.data.get(("", name))
        if found is None and not namespace:
            matches = [data for (_, other), data in self.data.items() if other == name]
            found = matches[0] if len(matches) == 1 else None
        return found


@dataclass(frozen=True)
class Environment:
    """Variables as the container gets them. `unknown`: why there may be more."""

    values: Mapping[str, Fact[str]]
    unknown: Unknown | None = None

    def expand(self, text: str, place: Place) -> Word:
        """Replace `$(NAME)` as the kubelet does: `$$` is a dollar, names that aren't defined stay as they are."""
        unknown = ""
        size = 0

        def one(match: re.Match[str]) -> str:
            nonlocal unknown, size
            if match[0] == "$$":
                return "$"
            found = self.values.get(match[1])
            if isinstance(found, Unknown):
                unknown = unknown or f"{match[0]}: {found.reason}"
                return match[0]
            if found is None and self.unknown is not None:
                unknown = unknown or f"{match[0]}: {self.unknown.reason}"
            value = match[0] if found is None else found.value
            size += len(value)
            return value if size <= MOST_TEXT else ""

        expanded = REFERENCE.sub(one, text)
        if size > MOST_TEXT:
            return Word(text, place, "its variables grow without bound")
        return Word(expanded, place, unknown)


def environment(container: Cursor, namespace: str, maps: ConfigMaps) -> Environment:
    """The variables of a container: envFrom first, then env in order, each seeing those before it."""
    values: dict[str, Fact[str]] = {}
    unknown: Unknown | None = None
    for source in container["envFrom"].items():
        reference = source["configMapRef"]
        if not reference:
            continue  # Secrets hold credentials; their values aren't the input's to show.
        data = maps.get(namespace, reference["name"].raw())
        if data is None:
            if reference["optional"].raw() != "true":
                unknown = Unknown(f"ConfigMap {reference['name'].raw()!r} isn't in the input", source.place)
            continue
        for key, child in data.entries():
            fact = child.string()
            values[source["prefix"].raw() + key] = Known("", child.place) if fact is None else fact
    for one in container["env"].items():
        name = one["name"].raw()
        if name:
            values[name] = _value(one, namespace, maps, Environment(values, unknown))
    return Environment(values, unknown)


def _value(one: Cursor, namespace: str, maps: ConfigMaps, before: Environment) -> Fact[str]:  # noqa: PLR0911 - one per source of a value
    source = one["valueFrom"]
    if not source:
        fact = one["value"].string()
        if fact is None:
            return Known("", one.place)
        if isinstance(fact, Unknown):
            return fact
        word = before.expand(fact.value, fact.place)
        return Unknown(word.unknown, word.place) if word.unknown else Known(word.text, word.place, fact.text)
    reference = source["configMapKeyRef"]
    if reference:
        data = maps.get(namespace, reference["name"].raw())
        if data is None:
            return Unknown(f"ConfigMap {reference['name'].raw()!r} isn't in the input", one.place)
        fact = data[reference["key"].raw()].string()
        if fact is None:
            return Unknown(f"ConfigMap {reference['name'].raw()!r} has no key {reference['key'].raw()!r}", one.place)
        return fact
    kinds = ", ".join(key for key, _ in source.entries()) or "valueFrom"
    return Unknown(f"comes from {kinds}", one.place)


def mounted_file(
    path: str, container: Cursor, spec: Cursor, namespace: str, maps: ConfigMaps
) -> Cursor | Unknown | None:
    """The text of a file that a ConfigMap of the input mounts at `path`. None: no ConfigMap is mounted there."""
    best: tuple[int, Cursor, str] | None = None
    for mount in container["volumeMounts"].items():
        at = mount["mountPath"].raw().rstrip("/")
        if path == at or path.startswith(f"{at}/"):
            rest = path[len(at) :].lstrip("/")
            if best is None or len(at) > best[0]:
                best = (len(at), mount, rest)
    if best is None:
        return None
    _, mount, rest = best
    name = mount["name"].raw()
    volume = next((one for one in spec["volumes"].items() if one["name"].raw() == name), None)
    if volume is None:
        return None
    source = volume["configMap"]
    projected = [one["configMap"] for one in volume.at("projected", "sources").items() if one["configMap"]]
    for config in [source, *projected] if source else projected:
        data = maps.get(namespace, config["name"].raw())
        if data is None:
            return Unknown(f"ConfigMap {config['name'].raw()!r} isn't in the input", volume.place)
        key = _key(config, mount["subPath"].raw() or rest)
        if isinstance(data.node, MappingNode) and key in data.node.entries:
            return data[key]
    return (
        Unknown(f"{path} isn't in the ConfigMap that is mounted there", volume.place) if source or projected else None
    )


def _key(config: Cursor, wanted: str) -> str:
    for item in config["items"].items():
        if item["path"].raw() == wanted:
            return item["key"].raw()
    return wanted
