"""JSON as a tree with lines. Not read as YAML: JSON allows tabs, surrogate pairs and keys of any length."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator

from srvmod.policies.readers.tree import Mapping, Node, Scalar, Sequence
from srvmod.policies.readers.yamltext import MOST_DEPTH, MOST_VALUES, BadText, Document

TOKEN = re.compile(
    r'(?P<space>[ \t\r]+)|(?P<line>\n)|(?P<mark>[{}\[\],:])|"(?P<text>(?:[^"\\\x00-\x1f]|\\.)*)"'
    r"|(?P<word>-?[0-9][0-9.eE+-]*|true|false|null)"
)


class _Tokens:
    """Tokens with their lines, one ahead."""

    def __init__(self, text: str) -> None:
        self._iterator = self._scan(text)
        self.count = 0

    def next(self) -> tuple[str, str, int]:
        """(kind, text, line); kind is empty at the end."""
        return next(self._iterator)

    def _scan(self, text: str) -> Iterator[tuple[str, str, int]]:
        position, line = 0, 1
        while position < len(text):
            match = TOKEN.match(text, position)
            if match is None:
                raise BadText(line, f"isn't JSON: {text[position : position + 20]!r} isn't expected here")
            position = match.end()
            kind = match.lastgroup or ""
            if kind == "line":
                line += 1
            elif kind != "space":
                self.count += 1
                if self.count > 4 * MOST_VALUES:
                    raise BadText(line, f"holds more than {MOST_VALUES:,} values in one document")
                yield kind, match[kind], line
        while True:
            yield "", "", line


def document(text: str) -> Document:  # noqa: PLR0912, PLR0915 - one loop instead of a recursion over the input
    """The one document of a text. Raises BadText."""
    tokens = _Tokens(text)
    problems: list[tuple[int, str]] = []
    stack: list[tuple[Mapping | Sequence, str]] = []
    root: Node | None = None
    key = ""
    token = tokens.next()
    while True:
        kind, word, line = token
        # A value, or the end of an empty collection.
        node: Node | None = None
        if kind == "mark" and word in "{[":
            if len(stack) >= MOST_DEPTH:
                raise BadText(line, f"is nested more than {MOST_DEPTH} deep")
            fresh: Mapping | Sequence = Mapping({}, {}, line) if word == "{" else Sequence([], line)
            stack.append((fresh, key))
            token = tokens.next()
            if token[:2] != ("mark", "}" if word == "{" else "]"):
                if word == "{":
                    key, token = _key(token, tokens, fresh, problems)
                continue
        elif kind == "text":
            node = Scalar(_text(word, line), False, line)
        elif kind == "word":
            node = Scalar("" if word == "null" else word, True, line)
        else:
            raise BadText(line, f"isn't JSON: {word or 'its end'!r} isn't expected here")
        # Put it where it belongs, and close what ends here.
        if node is not None:
            token = tokens.next()
        while True:
            if node is not None:
                if not stack:
                    root = node
                    break
                _put(stack[-1][0], key, node)
            container, outer = stack[-1]
            kind, word, line = token
            end = "}" if isinstance(container, Mapping) else "]"
            if (kind, word) == ("mark", end):
                stack.pop()
                node, key = container, outer
                token = tokens.next()
                continue
            if (kind, word) != ("mark", ","):
                raise BadText(line, f"isn't JSON: {word or 'its end'!r} instead of ',' or '{end}'")
            token = tokens.next()
            if isinstance(container, Mapping):
                key, token = _key(token, tokens, container, problems)
            break
        if root is not None:
            if token[0]:
                raise BadText(token[2], f"isn't JSON: {token[1]!r} after the end of the document")
            return Document(root, 1, problems)


def _key(
    token: tuple[str, str, int], tokens: _Tokens, mapping: Mapping | Sequence, problems: list[tuple[int, str]]
) -> tuple[str, tuple[str, str, int]]:
    kind, word, line = token
    if kind != "text":
        raise BadText(line, f"isn't JSON: {word or 'its end'!r} instead of a key")
    key = sys.intern(_text(word, line))
    if tokens.next()[:2] != ("mark", ":"):
        raise BadText(line, f"isn't JSON: no ':' after key {key!r}")
    if isinstance(mapping, Mapping):
        if key in mapping.lines:
            problems.append((line, f"key {key!r} is given twice (first on line {mapping.lines[key]})"))
        mapping.lines[key] = line
    return key, tokens.next()


def _put(container: Mapping | Sequence, key: str, node: Node) -> None:
    if isinstance(container, Mapping):
        container.entries[key] = node
    else:
        container.items.append(node)


def _text(word: str, line: int) -> str:
    if "\\" not in word:
        return word
    try:
        return str(json.loads(f'"{word}"'))
    except json.JSONDecodeError as error:
        raise BadText(line, f"isn't JSON: {error.msg}") from None
