"""Turns a section's validation errors into problems that say what is allowed."""

from collections.abc import Mapping
from types import NoneType
from typing import Any, cast, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from srvmod.infra.settings.base import Allowed, Section
from srvmod.infra.settings.places import Places, SettingPath
from srvmod.infra.settings.problems import Problem


def problems_of(
    error: ValidationError, kind: type[Section], path: SettingPath, places: Places, raw: Mapping[str, Any]
) -> list[Problem]:
    """One problem per error of a section at `path`."""
    found: list[Problem] = []
    for item in error.errors(include_url=False, include_input=False):
        inner: SettingPath = tuple(part for part in item["loc"] if part != "[key]")
        where = (*path, *inner)
        value = value_at(raw, where)
        if item["type"] == "extra_forbidden":
            found.append(places.unknown(where, value, _keys(_model_at(kind, inner[:-1]))))
        elif item["type"] == "missing":
            found.append(places.missing(where, _words(kind, inner)))
        elif item["type"] == "not_allowed":
            allowed = str(item.get("ctx", {}).get("allowed", ""))
            found.append(places.problem(where, value, "isn't allowed", allowed))
        else:
            words = "a mapping from text to text" if item["type"] == "dict_type" else _words(kind, inner)
            found.append(places.problem(where, value, "isn't allowed", words))
    return found


def value_at(raw: object, path: SettingPath) -> object:
    """The raw value at a path; None where there is none."""
    for part in path:
        if isinstance(raw, Mapping):
            raw = cast("Mapping[object, object]", raw).get(part)
        elif isinstance(raw, list) and isinstance(part, int) and part < len(cast("list[object]", raw)):
            raw = cast("list[object]", raw)[part]
        else:
            return None
    return raw


def _words(kind: type[Section], path: SettingPath) -> str:
    """What a setting may be: the words of its type, or the form that its model gives it."""
    field = _field_at(kind, path) if path else None
    if field is not None:
        said = allowed_words(field)
        if said:
            return said
    model = _model_at(kind, path)
    keys = ", ".join(_keys(model))
    in_list = field is not None and "tuple" in str(field.annotation) and not isinstance(path[-1], int)
    return f"a list of mappings with the keys {keys}" if in_list else f"a mapping with the keys {keys}"


def allowed_words(field: FieldInfo) -> str | None:
    """The words of `Allowed` on a field's type, or on a part of it."""
    for item in (*field.metadata, *_metadata(field.annotation)):
        if isinstance(item, Allowed):
            return item.words
    return None


def _metadata(annotation: object) -> list[object]:
    """Metadata anywhere in an annotation."""
    found: list[object] = list(getattr(annotation, "__metadata__", ()))
    for part in get_args(annotation):
        found += _metadata(part)
    return found


def _keys(model: type[Section]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _field_at(kind: type[Section], path: SettingPath) -> FieldInfo | None:
    """The field that a path ends in or lies in a list of."""
    names = [part for part in path if isinstance(part, str)]
    model = _model_at(kind, tuple(names[:-1]))
    for name, field in model.model_fields.items():
        if names and names[-1] == (field.alias or name):
            return field
    return None


def _model_at(kind: type[Section], path: SettingPath) -> type[Section]:
    """The model at a path; the last one that is known where the path leaves them."""
    for part in path:
        if isinstance(part, str):
            for name, field in kind.model_fields.items():
                if part == (field.alias or name):
                    kind = _section_in(field.annotation) or kind
    return kind


def _section_in(annotation: object) -> type[Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    for part in get_args(annotation):
        if part not in (NoneType, ...):
            found = _section_in(part)
            if found is not None:
                return found
    return None
