"""YAML documents as trees with lines, safe against hostile input.

Events come from libyaml where PyYAML has it. Aliases share their target instead of copying it, so that a bomb costs
what its text costs; merge keys copy, and count against the limit.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import yaml

from srvmod.policies.readers.tree import Mapping, Node, Scalar, Sequence

MOST_VALUES = 1_000_000
"""Values in one document; the tree of that many takes about 300 MB."""
MOST_DEPTH = 200
# libyaml is some 20 times as fast; every wheel has it, a build from source may not.
LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_events = cast("Callable[..., Iterator[Any]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType] - untyped


class BadText(Exception):  # noqa: N818 - the text is bad, not the program
    """Text that can't be read. `line` counts from 1."""

    def __init__(self, line: int, why: str, fix: str = "") -> None:
        super().__init__(f"line {line}: {why}")
        self.line = line
        self.why = why
        self.fix = fix


@dataclass
class Document:
    """One document of a file. `problems` (line, what) don't keep it from being read, but nobody would apply it."""

    root: Node | None
    line: int
    problems: list[tuple[int, str]] = field(default_factory=list[tuple[int, str]])


class _Open:
    """A collection whose end hasn't come yet."""

    __slots__ = ("anchor", "key", "key_line", "merges", "node")

    def __init__(self, node: Mapping | Sequence, anchor: str | None) -> None:
        self.node = node
        self.anchor = anchor
        self.key: str | None = None
        self.key_line = 0
        self.merges: list[Mapping] = []


class _Composer:
    """Builds one document's tree without recursion."""

    def __init__(self, line: int) -> None:
        self.document = Document(None, line)
        self.stack: list[_Open] = []
        self.anchors: dict[str, Node | None] = {}
        self.count = 0

    def add(self, node: Node, line: int) -> None:
        """Put a finished node where it belongs."""
        if not self.stack:
            self.document.root = node
            return
        top = self.stack[-1]
        if isinstance(top.node, Sequence):
            top.node.items.append(node)
        elif top.key is None:
            self._take_key(top, node, line)
        else:
            self._take_value(top, node)

    def _take_key(self, top: _Open, node: Node, line: int) -> None:
        if isinstance(node, Scalar):
            top.key = sys.intern(node.text)
        else:
            top.key = "?"
            line = node.line or line
            self.document.problems.append((line, "isn't YAML that Kubernetes reads: a key that isn't text"))
        top.key_line = line

    def _take_value(self, top: _Open, node: Node) -> None:
        mapping = cast(Mapping, top.node)
        key = cast(str, top.key)
        top.key = None
        if key == "<<":
            sources = node.items if isinstance(node, Sequence) else [node]
            for source in sources:
                if isinstance(source, Mapping):
                    top.merges.append(source)
                else:
                    self.document.problems.append((top.key_line, "a merge key (<<) that doesn't merge a mapping"))
            return
        if key in mapping.entries:
            first = mapping.lines.get(key, mapping.line)
            self.document.problems.append((top.key_line, f"key {key!r} is given twice (first on line {first})"))
        mapping.entries[key] = node
        mapping.lines[key] = top.key_line

    def close(self) -> None:
        """End the innermost collection; merged keys fill what the mapping doesn't say itself."""
        top = self.stack.pop()
        if isinstance(top.node, Mapping):
            for source in top.merges:
                self.spend(len(source.entries), top.node.line or 1)
                for key, value in source.entries.items():
                    if key not in top.node.entries:
                        top.node.entries[key] = value
                        if key in source.lines:
                            top.node.lines[key] = source.lines[key]
        if top.anchor:
            self.anchors[top.anchor] = top.node
        self.add(top.node, top.node.line or 1)

    def open(self, node: Mapping | Sequence, anchor: str | None) -> None:
        """Begin a collection."""
        if anchor:
            # Known but unfinished: an alias to it from inside is a cycle.
            self.anchors[anchor] = None
        if len(self.stack) >= MOST_DEPTH:
            raise BadText(node.line or 1, f"is nested more than {MOST_DEPTH} deep")
        self.stack.append(_Open(node, anchor))

    def spend(self, amount: int, line: int) -> None:
        """Count values against the limit."""
        self.count += amount
        if self.count > MOST_VALUES:
            raise BadText(line, f"holds more than {MOST_VALUES:,} values in one document", "split it into documents")


def _step(composer: _Composer, event: Any) -> None:
    line = event.start_mark.line + 1
    if isinstance(event, yaml.ScalarEvent):
        composer.spend(1, line)
        # A tag such as !!str takes the word's own type away.
        plain = bool(event.implicit[0]) and event.style is None
        node = Scalar(event.value, plain, line, event.style in {"|", ">"})
        if event.anchor:
            composer.anchors[event.anchor] = node
        composer.add(node, line)
    elif isinstance(event, yaml.AliasEvent):
        composer.spend(1, line)
        target = composer.anchors.get(event.anchor)
        if target is None:
            known = event.anchor in composer.anchors
            why = "refers to what contains it (a cycle)" if known else "isn't defined before it is used"
            raise BadText(line, f"alias *{event.anchor} {why}")
        composer.add(target, line)
    elif isinstance(event, yaml.MappingStartEvent):
        composer.spend(1, line)
        composer.open(Mapping({}, {}, line), event.anchor)
    elif isinstance(event, yaml.SequenceStartEvent):
        composer.spend(1, line)
        composer.open(Sequence([], line), event.anchor)
    elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
        composer.close()


def documents(text: str) -> Iterator[Document]:
    """The documents of a text, one after the other. Raises BadText at the first place that can't be read."""
    composer: _Composer | None = None
    try:
        for event in _events(text, Loader=LOADER):
            if isinstance(event, yaml.DocumentStartEvent):
                composer = _Composer(event.start_mark.line + 1)
            elif isinstance(event, yaml.DocumentEndEvent):
                if composer is not None and composer.document.root is not None:
                    yield composer.document
                composer = None
            elif composer is not None:
                _step(composer, event)
    except yaml.YAMLError as error:
        raise _explained(error) from None


def _explained(error: yaml.YAMLError) -> BadText:
    mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    line = mark.line + 1 if mark is not None else 1
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return BadText(line, f"isn't YAML: {problem}")
