"""From the raw mapping of a stack's config to `Settings`, or to every problem that it has."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

from pydantic import ValidationError, create_model
from pydantic.fields import FieldInfo

from srvmod.infra.settings.base import Section
from srvmod.infra.settings.explain import problems_of
from srvmod.infra.settings.holes import HOLE
from srvmod.infra.settings.names import PRODUCT, SECRET_KEYS
from srvmod.infra.settings.places import Lines, Places
from srvmod.infra.settings.plain import plain
from srvmod.infra.settings.problems import Problem, SettingsError
from srvmod.infra.settings.rules import check
from srvmod.infra.settings.settings import Settings


def load(raw: Mapping[str, object], *, stack: str, source: Path | None = None, lines: Lines | None = None) -> Settings:
    """Settings of `stack` from its config: section name to section, without the project's prefix.

    `source` is the file that the config came from and `lines` the line of each path in it; both only serve
    messages. Secrets in `raw` are passed over. Raises SettingsError with every problem.
    """
    places = Places(stack, source, lines or {})
    clean, unclear = plain(raw, places)
    problems: list[Problem] = []
    sections: dict[str, Any] = {}
    for name, field in Settings.model_fields.items():
        if name != "stack":
            sections[name], found = _section(name, field, clean, places)
            problems += found
    problems += _unknown_sections(clean, places)
    partial = Settings.model_construct(stack=stack, **sections)
    problems += check(partial, clean, places)
    known = {problem.key for problem in unclear}
    problems = [*unclear, *(problem for problem in problems if problem.key not in known)]
    if problems:
        raise SettingsError(_in_order(problems, clean), stack)
    return Settings(stack=stack, **sections)


def _section(name: str, field: FieldInfo, raw: Mapping[str, Any], places: Places) -> tuple[object, list[Problem]]:
    """A section, complete or with holes, and its problems."""
    if name not in raw and not field.is_required():
        return field.get_default(call_default_factory=True), []
    kind = field.annotation
    if not (isinstance(kind, type) and issubclass(kind, Section)):
        one = _single(Settings, name)
        value, problems = _validate(one, {name: raw[name]}, (), places, raw)
        return (HOLE if problems else getattr(value, name)), problems
    # An absent section is an empty one: each of its keys that has no default is then reported by its own name.
    return _validate(kind, raw.get(name, {}), (name,), places, raw)


def _validate(
    kind: type[Section], value: object, path: tuple[str, ...], places: Places, raw: Mapping[str, Any]
) -> tuple[object, list[Problem]]:
    try:
        return kind.model_validate_json(json.dumps(value)), []
    except ValidationError as error:
        return _with_holes(kind, value), problems_of(error, kind, path, places, raw)


def _with_holes(kind: type[Section], value: object) -> object:
    """The section with the values that are right, and holes for the others."""
    if not isinstance(value, Mapping):
        return HOLE
    given = cast("Mapping[str, object]", value)
    fields: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        alias = field.alias or name
        if alias in given:
            try:
                one = _single(kind, name).model_validate_json(json.dumps({alias: given[alias]}))
                fields[name] = getattr(one, name)
            except ValidationError:
                fields[name] = HOLE
        else:
            fields[name] = HOLE if field.is_required() else field.get_default(call_default_factory=True)
    return kind.model_construct(**fields)


@cache
def _single(kind: type[Section], name: str) -> type[Section]:
    """A section with one field of another."""
    field = kind.model_fields[name]
    only: Any = {name: (field.rebuild_annotation(), field)}
    return create_model(name, __base__=Section, **only)


def _unknown_sections(raw: Mapping[str, Any], places: Places) -> list[Problem]:
    known = [name for name in Settings.model_fields if name != "stack"]
    return [
        places.unknown((name,), value, [*known, *SECRET_KEYS])
        for name, value in raw.items()
        if name not in known and name not in SECRET_KEYS
    ]


def _in_order(problems: list[Problem], raw: Mapping[str, Any]) -> list[Problem]:
    """Problems in the order of the file's sections; stable within a section."""
    order = {f"{PRODUCT}:{name}": position for position, name in enumerate(raw)}

    def position(problem: Problem) -> int:
        return order.get(problem.key.partition(".")[0].partition("[")[0], len(order))

    return sorted(problems, key=position)
