"""Brings whatever a YAML file or a caller holds down to plain JSON values, reporting what can't be."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from srvmod.infra.settings.names import SECRET_KEYS
from srvmod.infra.settings.places import Places, SettingPath
from srvmod.infra.settings.problems import Problem

DEEPEST = 20
MOST_VALUES = 20_000
"""More values than any stack has: aliases of aliases would otherwise grow without end."""
LARGEST = 10**18


class _Plain:
    def __init__(self, places: Places) -> None:
        self.places = places
        self.problems: list[Problem] = []
        self.values = 0
        self.above: set[int] = set()
        """Mappings and lists that the walk is inside of."""

    def value(self, value: object, path: SettingPath) -> Any:  # noqa: PLR0911  (one line per kind of value)
        self.values += 1
        if id(value) in self.above:
            return self._report(path, "(an alias)", "refers to itself", "plain settings")
        if len(path) > DEEPEST or self.values > MOST_VALUES:
            if self.values <= MOST_VALUES + 1:
                self._report(path, "(too much)", "is nested too deep or holds too many values", "plain settings")
            return None
        if isinstance(value, str):
            return value.encode("utf-8", "replace").decode()
        if value is None or isinstance(value, bool | float):
            return value
        if isinstance(value, int):
            return self._whole(value, path)
        if isinstance(value, bytes | bytearray) or not isinstance(value, Mapping | Sequence):
            return self._other(value, path)
        self.above.add(id(cast("object", value)))
        try:
            return self._inside(cast("Mapping[object, object] | Sequence[object]", value), path)
        finally:
            self.above.discard(id(cast("object", value)))

    def _inside(self, value: Mapping[object, object] | Sequence[object], path: SettingPath) -> Any:
        if isinstance(value, Mapping):
            return self._mapping(value, path)
        return [self.value(item, (*path, index)) for index, item in enumerate(value)]

    def _whole(self, value: int, path: SettingPath) -> Any:
        if abs(value) <= LARGEST:
            return value
        return self._report(path, "(a huge number)", "is too large", f"at most {LARGEST:,}")

    def _other(self, value: object, path: SettingPath) -> Any:
        kind = type(value).__name__
        return self._report(path, f"({kind})", "isn't a plain value", "text, numbers, true, false, lists, mappings")

    def _mapping(self, mapping: Mapping[object, object], path: SettingPath) -> Any:
        if "secure" in mapping and path:
            return self._report(path, mapping, "is encrypted, but isn't a secret setting", "a plain value")
        result: dict[str, Any] = {}
        for key, item in mapping.items():
            if isinstance(key, str):
                name = key.encode("utf-8", "replace").decode()
                if path or name not in SECRET_KEYS:
                    result[name] = self.value(item, (*path, name))
            else:
                self._report((*path, str(key)[:40]), item, "has a key that isn't text", "keys in quotes")
        return result

    def _report(self, path: SettingPath, value: object, problem: str, allowed: str) -> None:
        self.problems.append(self.places.problem(path or ("config",), value, problem, allowed))


def plain(raw: Mapping[str, object], places: Places) -> tuple[dict[str, Any], list[Problem]]:
    """The mapping in plain JSON values without its secrets, and a problem for each value that has no such form."""
    walk = _Plain(places)
    return cast("dict[str, Any]", walk.value(raw, ())), walk.problems
