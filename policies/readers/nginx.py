"""nginx's configuration: for each place that passes requests on, the directives that hold there."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from srvmod.policies.facts import Known, Place, Setting
from srvmod.policies.readers.tree import Cursor, place_in_text

TOKEN = re.compile(
    r"#[^\n]*|\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|[{};]|(?:\$\{[^}\s]{0,100}\}|[^\s{};\"'#])[^\s{};]*|\n"
)
HOST = re.compile(r"(?:https?|grpcs?)://([A-Za-z0-9_.-]+)")
PASSING = {"proxy_pass", "fastcgi_pass", "grpc_pass", "uwsgi_pass"}
INHERITED = {"proxy_buffering", "gzip_types", "proxy_read_timeout"}
MOST_DEPTH = 50


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive with its line from 0."""

    words: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Passed:
    """A directive that passes requests on: to which hosts, and what holds there."""

    directive: Directive
    hosts: frozenset[str]
    holds: Mapping[str, Directive]


@dataclass
class _Block:
    head: tuple[str, ...] = ()
    directives: list[Directive] = field(default_factory=list[Directive])
    blocks: list[_Block] = field(default_factory=list["_Block"])


def passed(text: str) -> list[Passed]:
    """Every place of a configuration that passes requests on."""
    root = _parsed(text)
    blocks = list(_all(root))
    upstreams = {
        block.head[1]: frozenset(
            one.words[1].split(":")[0] for one in block.directives if one.words[0] == "server" and len(one.words) > 1
        )
        for block in blocks
        if len(block.head) > 1 and block.head[0] == "upstream"
    }
    variables = {
        one.words[1]: one.words[2]
        for block in blocks
        for one in block.directives
        if one.words[0] == "set" and len(one.words) > 2
    }
    return list(_passed(root, {}, upstreams, variables))


def settings(one: Passed, cursor: Cursor) -> Iterator[Setting]:
    """What holds at such a place. nginx buffers unless it is told otherwise."""
    if "proxy_buffering" not in one.holds:
        yield Setting("buffering", Known("on", place_in_text(cursor, one.directive.line), "nginx's default"))
    yield from of_directives(one.holds.values(), lambda line: place_in_text(cursor, line))


def flat(cursor: Cursor) -> Iterator[Setting]:
    """Directives of a snippet."""
    root = _parsed(cursor.raw())
    found = [one for block in _all(root) for one in block.directives]
    yield from of_directives(found, lambda line: place_in_text(cursor, line))


def of_directives(directives: Iterable[Directive], place_of: Callable[[int], Place]) -> Iterator[Setting]:
    """Settings that directives give."""
    for one in directives:
        name, *values = one.words
        place, text = place_of(one.line), " ".join(one.words)
        if name == "proxy_buffering" and values:
            yield Setting("buffering", Known(values[0], place, text))
        elif name == "proxy_read_timeout" and values:
            yield Setting("idle-timeout", Known("".join(values), place, text))
        elif name == "gzip_types" and {"text/event-stream", "*"} & set(values):
            yield Setting("compression", Known("text/event-stream", place, text))


def _parsed(text: str) -> _Block:
    root = _Block()
    stack, words, line, start = [root], list[str](), 0, 0
    for match in TOKEN.finditer(text):
        token = match[0]
        if token == "\n" or token.startswith("#"):
            line += token == "\n"
            continue
        if token == ";" and words:
            stack[-1].directives.append(Directive(tuple(words), start))
        elif token == "{" and len(stack) < MOST_DEPTH:
            block = _Block(tuple(words))
            stack[-1].blocks.append(block)
            stack.append(block)
        elif token == "}" and len(stack) > 1:
            stack.pop()
        if token in {";", "{", "}"}:
            words = []
            continue
        start = start if words else line
        words.append(token.strip("\"'"))
        line += token.count("\n")
    if words:
        stack[-1].directives.append(Directive(tuple(words), start))
    return root


def _all(block: _Block) -> Iterator[_Block]:
    yield block
    for one in block.blocks:
        yield from _all(one)


def _passed(
    block: _Block,
    above: Mapping[str, Directive],
    upstreams: Mapping[str, frozenset[str]],
    variables: Mapping[str, str],
) -> Iterator[Passed]:
    holds = {**above, **{one.words[0]: one for one in block.directives if one.words[0] in INHERITED}}
    for one in block.directives:
        if one.words[0] in PASSING and len(one.words) > 1:
            target = re.sub(r"\$\{?\w+\}?", lambda match: variables.get("$" + match[0].strip("${}"), ""), one.words[1])
            match = HOST.match(target)
            name = match[1] if match else target.split(":")[0]
            yield Passed(one, upstreams.get(name, frozenset({name})), holds)
    for inner in block.blocks:
        if inner.head[:1] == ("stream",):
            continue  # Bytes of connections, passed on as they come.
        yield from _passed(inner, holds, upstreams, variables)
