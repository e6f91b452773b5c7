"""Documents as a tree that knows its lines, whatever they were written in: YAML, JSON or plain values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence as SequenceABC
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from srvmod.policies.facts import Known, Maybe, Place, Unknown

TEMPLATE = re.compile(r"\{\{|\{%")
INTEGER = re.compile(r"[+-]?[0-9]+")
BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
NULLS = {"", "~", "null", "Null", "NULL"}


@dataclass(slots=True)
class Scalar:
    """A leaf. `plain` is true where the spelling decides the type: unquoted YAML, JSON numbers and words."""

    text: str
    plain: bool
    line: int | None
    block: bool = False
    """A block scalar, whose first line of text is below `line`."""

    @property
    def null(self) -> bool:
        """Whether it says nothing."""
        return self.plain and self.text in NULLS


@dataclass(slots=True)
class Sequence:
    """A list."""

    items: list[Node]
    line: int | None


@dataclass(slots=True)
class Mapping:
    """A mapping with text keys; the line of each key is kept."""

    entries: dict[str, Node]
    lines: dict[str, int]
    line: int | None


@dataclass(slots=True)
class Opaque:
    """A value that exists but can't be known now, such as a Pulumi output at preview.

    `overlooked`: places where a reader wanted a list, a mapping or a word of it and went on without. What isn't a fact
    can't become an unknown fact, so whoever hands in trees with unknowns has to look here too.
    """

    reason: str
    line: int | None = None
    overlooked: list[Place] = field(default_factory=list[Place])


Node: TypeAlias = Scalar | Sequence | Mapping | Opaque


def from_plain(value: object, opaque: MappingABC[int, str] | None = None) -> Node:  # noqa: PLR0911 - one per type
    """A tree from dicts, lists and scalars without lines. `opaque`: id of a value that stands for an unknown → why."""
    if opaque and id(value) in opaque:
        return Opaque(opaque[id(value)])
    if isinstance(value, MappingABC):
        pairs = cast("MappingABC[object, object]", value)
        return Mapping({str(k): from_plain(v, opaque) for k, v in pairs.items()}, {}, None)
    if isinstance(value, str):
        return Scalar(value, False, None)
    if isinstance(value, SequenceABC):
        return Sequence([from_plain(item, opaque) for item in cast("SequenceABC[object]", value)], None)
    if value is None:
        return Scalar("", True, None)
    if isinstance(value, bool):
        return Scalar("true" if value else "false", True, None)
    if isinstance(value, float) and value.is_integer():
        return Scalar(str(int(value)), True, None)
    if isinstance(value, int | float):
        return Scalar(str(value), True, None)
    return Opaque(f"a value of type {type(value).__name__}")


@dataclass(frozen=True, slots=True)
class Cursor:
    """A node with its place. Asking for what isn't there gives a cursor on nothing, at the nearest place."""

    node: Node | None
    place: Place

    def __bool__(self) -> bool:
        """Whether something is there (an explicit null isn't)."""
        return self.node is not None and not (isinstance(self.node, Scalar) and self.node.null)

    def __getitem__(self, key: str | int) -> Cursor:
        """The child under a key or index."""
        node = self.node
        if isinstance(key, int):
            path = f"{self.place.path}[{key}]"
            child = node.items[key] if isinstance(node, Sequence) and key < len(node.items) else None
            line = self.place.line if child is None else child.line
        else:
            shown = f'["{key}"]' if "." in key or "/" in key else f".{key}" if self.place.path else key
            path = f"{self.place.path}{shown}"
            child = node.entries.get(key) if isinstance(node, Mapping) else None
            line = self.place.line
            if child is not None and isinstance(node, Mapping):
                line = node.lines.get(key, child.line)
        if child is None and isinstance(node, Opaque):
            child = node
        return Cursor(child, self.place.at(line, path))

    def at(self, *keys: str | int) -> Cursor:
        """A descendant."""
        cursor = self
        for key in keys:
            cursor = cursor[key]
        return cursor

    def items(self) -> Iterator[Cursor]:
        """Elements of a list; nothing for anything else."""
        self._overlook()
        if isinstance(self.node, Sequence):
            for index in range(len(self.node.items)):
                yield self[index]

    def entries(self) -> Iterator[tuple[str, Cursor]]:
        """Keys and values of a mapping; nothing for anything else."""
        self._overlook()
        if isinstance(self.node, Mapping):
            for key in self.node.entries:
                yield key, self[key]

    @property
    def opaque(self) -> Unknown | None:
        """Why the value can't be known, if it can't."""
        if isinstance(self.node, Opaque):
            return Unknown(self.node.reason, self.place)
        if isinstance(self.node, Scalar) and TEMPLATE.search(self.node.text):
            return Unknown("is a template that isn't rendered", self.place)
        return None

    def string(self) -> Maybe[str]:
        """The text of a leaf."""
        if not self:
            return None
        if unknown := self.opaque:
            return unknown
        if isinstance(self.node, Scalar):
            return Known(self.node.text, self.place, self.node.text)
        return Unknown("isn't a text", self.place)

    def raw(self) -> str:
        """The text of a leaf, templates included; empty for anything else."""
        self._overlook()
        return self.node.text if isinstance(self.node, Scalar) and not self.node.null else ""

    def integer(self) -> Maybe[int]:
        """A whole number, quoted or not, as quantities are."""
        found = self.string()
        if not isinstance(found, Known):
            return found
        text = found.value.strip()
        if INTEGER.fullmatch(text) and len(text) <= 18:
            return Known(int(text), self.place, found.value)
        return Unknown(f"{found.value!r} isn't a whole number", self.place)

    def boolean(self) -> Maybe[bool]:
        """True or false, in any spelling that YAML 1.1 has."""
        found = self.string()
        if not isinstance(found, Known):
            return found
        value = BOOLEANS.get(found.value.lower())
        return (
            Unknown(f"{found.value!r} isn't true or false", self.place) if value is None else Known(value, self.place)
        )

    def texts(self) -> dict[str, str]:
        """A mapping of texts, such as labels; what isn't text is left out."""
        found = {key: child.raw() for key, child in self.entries()}
        return {key: text for key, text in found.items() if isinstance(self[key].node, Scalar)}

    def _overlook(self) -> None:
        if isinstance(self.node, Opaque):
            self.node.overlooked.append(self.place)


def place_in_text(cursor: Cursor, offset: int) -> Place:
    """The place of the line `offset` (from 0) inside a leaf's text, exact for literal block scalars."""
    node = cursor.node
    if isinstance(node, Scalar) and node.block and node.line is not None:
        return cursor.place.at(node.line + 1 + offset, cursor.place.path)
    return cursor.place
