"""The options that `--config FILE` brings, where the file is in the input."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from srvmod.policies.engine_versions import Table
from srvmod.policies.facts import Misuse, Place, Unknown
from srvmod.policies.readers.tree import BOOLEANS, Cursor, place_in_text
from srvmod.policies.readers.words import Word
from srvmod.policies.readers.yamltext import BadText, documents

OpenFile = Callable[[str], Cursor | Unknown | None]


@dataclass
class Complaints:
    """What a line does wrong for a version, and what in it can't be established."""

    table: Table
    misuses: list[Misuse] = field(default_factory=list[Misuse])
    unknowns: list[Unknown] = field(default_factory=list[Unknown])

    def misuse(self, kind: str, word: Word, problem: str, allowed: str) -> None:
        """Remember one."""
        self.misuses.append(Misuse(kind, word.text[:80], problem, allowed, word.place))


def json_value(value: str | list[str]) -> Any:
    """A value as JSON, or the text itself."""
    if isinstance(value, list):
        return value
    try:
        return json.loads(value)
    except (json.JSONDecodeError, RecursionError):
        return value


def with_config_file(words: list[Word], parse: Complaints, open_file: OpenFile | None) -> list[Word]:
    """What `--config FILE` says goes before the other options, so that these win."""
    attached = next((word for word in words if word.text.startswith("--config=")), None)
    if attached is not None:
        problem = "--config=FILE isn't read: vLLM looks for the word --config and the file after it"
        parse.misuse("unexpected", attached, problem, "--config FILE")
    at = next((i for i, word in enumerate(words) if word.text == "--config" and not word.unknown), None)
    if at is None:
        return words
    if at + 1 >= len(words):
        parse.misuse("missing-value", words[at], "--config needs a file", "--config FILE")
        return words[:at]
    named = words[at + 1]
    rest = [*words[:at], *words[at + 2 :]]
    if named.unknown:
        parse.unknowns.append(Unknown(named.unknown, named.place))
        return rest
    if not named.text.endswith((".yaml", ".yml")):
        parse.misuse("type", named, "vLLM reads only .yaml and .yml files", "--config FILE.yaml")
    found = open_file(named.text) if open_file else None
    if found is None or isinstance(found, Unknown):
        why = f"{named.text} isn't in the input" if found is None else found.reason
        parse.unknowns.append(Unknown(f"options may come from --config: {why}", named.place))
        return rest
    model = rest[:1] if rest and not rest[0].text.startswith("-") else []
    return [*model, *_file_words(found, parse), *rest[len(model) :]]


def _file_words(cursor: Cursor, parse: Complaints) -> list[Word]:
    text = cursor.raw()
    try:
        document = next(documents(text), None)
    except BadText as error:
        parse.unknowns.append(Unknown(f"the --config file {error.why}", place_in_text(cursor, error.line - 1)))
        return []
    words: list[Word] = []
    if document is None:
        return words
    for key, child in Cursor(document.root, cursor.place).entries():
        place = place_in_text(cursor, (child.place.line or 1) - 1)
        name = f"--{key.replace('_', '-')}"
        if unknown := child.opaque:
            words.append(Word(f"{name}=", place, unknown.reason))
            continue
        words.extend(_entry(key, child, place, parse))
    return words


def _entry(key: str, child: Cursor, place: Place, parse: Complaints) -> list[Word]:
    name = f"--{key.replace('_', '-')}"
    option = parse.table.by_flag.get(name)
    text = child.raw()
    items = list(child.items())
    if items:
        return [Word(name, place), *(Word(item.raw(), place) for item in items)]
    if child and not text:
        return [Word(f"{name}={json.dumps(_plain(child))}", place)]
    if text.lower() in BOOLEANS and (option is None or option.kind in {"true", "switch"}):
        if BOOLEANS[text.lower()]:
            return [Word(name, place)]
        # vLLM's loader looks for --no-KEY as the file spells it, and drops the line where there is none.
        negative = f"--no-{key}"
        if negative in parse.table.by_flag:
            return [Word(negative, place)]
        cleared = sorted(option.negative)[:1] if option else []
        parse.misuse("unexpected", Word(f"{key}: {text}", place), "false is ignored here", " ".join(cleared) or name)
        return []
    return [Word(f"{name}={text}", place)]


def _plain(cursor: Cursor, depth: int = 0) -> Any:
    if depth > 20:
        return None
    if entries := dict(cursor.entries()):
        return {key: _plain(child, depth + 1) for key, child in entries.items()}
    if items := list(cursor.items()):
        return [_plain(item, depth + 1) for item in items]
    return json_value(cursor.raw())
