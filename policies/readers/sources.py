"""Where input comes from: files, folders, standard input. Each document is a tree, or a reason why it can't be read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from srvmod.policies.facts import Place, Unread
from srvmod.policies.readers import jsontext
from srvmod.policies.readers.tree import Mapping
from srvmod.policies.readers.yamltext import BadText, Document, documents

SUFFIXES = {".yaml", ".yml", ".json"}
MOST_BYTES = 64 * 1024 * 1024
STANDARD_INPUT = "-"
CONFLICT = re.compile(r"^(<{7}|={7}|>{7})( |$)", re.MULTILINE)
TEMPLATE = re.compile(r"\{\{|\{%")
YTT = re.compile(r"^[ \t]*#@ ?(?:load|def|if|for|end|data/|overlay/)|: #@ ", re.MULTILINE)
RENDER = "render it first (helm template, kustomize build, the tool's own rendering) and check the result"


@dataclass(frozen=True, slots=True)
class Text:
    """One input's text and name."""

    source: str
    text: str


@dataclass(frozen=True, slots=True)
class Input:
    """One document of one input."""

    source: str
    document: Document
    text: Text


def files(paths: Sequence[str]) -> Iterator[str | Unread]:
    """Names of the files to read. Folders give their YAML and JSON files, hidden folders left out; a file that is
    named is read whatever its name."""
    for path in paths:
        if path == STANDARD_INPUT or not Path(path).is_dir():
            yield path
            continue
        found = False
        for folder, folders, names in os.walk(path):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(names):
                if Path(name).suffix.lower() in SUFFIXES:
                    found = True
                    file = Path(folder) / name
                    # Reading a pipe would wait for whoever writes into it.
                    other = file.exists() and not file.is_file()
                    yield Unread(Place(str(file)), "isn't a regular file") if other else str(file)
        if not found:
            yield Unread(Place(path), "holds no YAML or JSON file", "name a file, or a folder that holds some")


def read(path: str) -> Text | Unread:
    """A file's text."""
    place = Place(path)
    try:
        if path == STANDARD_INPUT:
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(path).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return Unread(place, f"can't be opened: {reason}")
    return decode(path, data)


def decode(source: str, data: bytes) -> Text | Unread:
    """Bytes as text, in the encodings that YAML allows."""
    place = Place(source, 1)
    if len(data) > MOST_BYTES:
        return Unread(place, f"is larger than {MOST_BYTES >> 20} MiB", "split it")
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        return Unread(Place(source, line), "is binary, or text in another encoding than UTF-8 and UTF-16")
    at = text.find("\0")
    if at >= 0:
        return Unread(Place(source, text.count("\n", 0, at) + 1), "is binary")
    return Text(source, text)


def parse(text: Text) -> Iterator[Input | Unread]:
    """The documents of a text. What follows a place that can't be read is left out, and that place is reported."""
    conflict = CONFLICT.search(text.text) if "<<<<<<<" in text.text else None
    if conflict:
        line = text.text.count("\n", 0, conflict.start()) + 1
        yield Unread(Place(text.source, line), "holds merge-conflict markers", "resolve the conflict")
        return
    ytt = YTT.search(text.text) if "#@" in text.text else None
    if ytt:
        line = text.text.count("\n", 0, ytt.end()) + 1
        yield Unread(Place(text.source, line), "is a template that isn't rendered (ytt: #@)", RENDER)
        return
    try:
        named = text.source.lower().endswith(".json") and bool(text.text.strip())
        if named or (text.text.lstrip()[:1] in ("{", "[") and not TEMPLATE.match(text.text.lstrip())):
            try:
                one = jsontext.document(text.text)
            except BadText as error:
                if named:
                    raise error
            else:
                yield from _checked(text, one)
                return
        for document in documents(text.text):
            yield from _checked(text, document)
    except BadText as error:
        yield _unread(text, error.line, error.why, error.fix)
    except (RecursionError, ValueError, OverflowError) as error:
        yield Unread(Place(text.source, 1), f"can't be read: {type(error).__name__}")


def _checked(text: Text, document: Document) -> Iterator[Input | Unread]:
    root = document.root
    if isinstance(root, Mapping) and "kind" in root.entries:
        for line, what in document.problems:
            yield _unread(text, line, what, "")
    yield Input(text.source, document, text)


def _unread(text: Text, line: int, why: str, fix: str) -> Unread:
    """A parser's complaint. Templates look like bad YAML: say so where one is on the line, or anywhere above it."""
    place = Place(text.source, line)
    lines = text.text.splitlines()
    near = lines[max(0, line - 2) : line + 1]
    template = next((TEMPLATE.search(one) for one in near if TEMPLATE.search(one)), None)
    if template is None and why.startswith("isn't YAML"):
        template = TEMPLATE.search("\n".join(lines[:line]))
    if template is not None:
        kind = "Helm or Go" if template[0] == "{{" else "Jinja"
        return Unread(place, f"is a template that isn't rendered ({kind}: {template[0]})", RENDER)
    return Unread(place, why, fix)
