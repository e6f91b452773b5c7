"""Pulumi property values as plain Python, and back.

The plugins here ask the engine for plain values: secrets arrive unwrapped, resources as ids, unknowns as a sentinel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf import struct_pb2

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
DEFAULTS = "__defaults"

Props = dict[str, Any]


def read(struct: struct_pb2.Struct) -> Props:
    """A message as a dict. Whole numbers become ints, since protobuf only knows floats; nulls are left out."""
    return {k: v for k, v in ((k, _value(v)) for k, v in struct.fields.items()) if v is not None}


def _value(value: struct_pb2.Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        inner = read(value.struct_value)
        return inner.get("value") if inner.get(SIGNATURE) == SECRET else inner
    if kind == "list_value":
        return [_value(v) for v in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    return getattr(value, kind) if kind and kind != "null_value" else None


def write(props: Mapping[str, Any]) -> struct_pb2.Struct:
    """A dict as a message. None is left out: a property that isn't set stays absent."""
    struct = struct_pb2.Struct()
    struct.update({k: v for k, v in props.items() if v is not None})
    return struct


def unknown(value: Any) -> bool:
    """Whether a value, or anything in it, isn't known before the deployment."""
    if isinstance(value, Mapping):
        return any(unknown(v) for v in value.values())
    if isinstance(value, list):
        return any(unknown(v) for v in value)
    return bool(value == UNKNOWN)
