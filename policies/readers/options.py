"""Options as vLLM's own parser takes them: Python's argparse with underscores, dotted JSON and a config file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any, cast

from srvmod.policies.engine_versions import Option, Table
from srvmod.policies.facts import CommandLine, Fact, Known, Maybe, Misuse, Place, Unknown, Value
from srvmod.policies.readers.config_file import Complaints, OpenFile, json_value, with_config_file
from srvmod.policies.readers.option_values import convert
from srvmod.policies.readers.words import Word

NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
REMOVED = {
    "--swap-space": "use --kv-offloading-size (GiB)",
    "--num-scheduler-steps": "leave it out: multi-step scheduling is gone",
    "--max-seq-len-to-capture": "use --max-cudagraph-capture-size",
    "--cuda-graph-sizes": "use --cudagraph-capture-sizes",
    "--use-v2-block-manager": "leave it out: there is only one block manager",
    "--preemption-mode": "leave it out: preempted sequences are recomputed",
    "--disable-async-output-proc": "use --no-async-scheduling, if it must be off",
    "--guided-decoding-backend": "use --structured-outputs-config",
    "--calculate-kv-scales": "use a checkpoint with k/v scales",
    "--timeout-keep-alive": "set VLLM_HTTP_TIMEOUT_KEEP_ALIVE",
    "--tp": "use --tensor-parallel-size or -tp",
    "--task": "use --runner",
    "--device": "leave it out: the build decides",
    "--worker-use-ray": "use --distributed-executor-backend",
    "--engine-use-ray": "leave it out",
    "--disable-frontend-multiprocessing": "leave it out",
}
"""Options of earlier versions, and what took their place. Only where the pinned table doesn't know them."""


@dataclass
class _Parse(Complaints):
    given: dict[str, Fact[Value]] = field(default_factory=dict[str, "Fact[Value]"])
    positional: list[Word] = field(default_factory=list[Word])

    # What a word may be, as argparse's own first pass has it.
    def option_of(self, word: Word) -> tuple[Option, str, Word | None] | None:
        """(option, flag as the table spells it, attached value), or None for a value or a positional."""
        text = word.text
        if not text.startswith("-") or text == "-" or NEGATIVE_NUMBER.fullmatch(text):
            return None
        name, equals, value = text.partition("=")
        attached = replace(word, text=value) if equals else None
        if text in self.table.by_flag:
            return self.table.by_flag[text], text, None
        if name in self.table.by_flag and equals:
            return self.table.by_flag[name], name, attached
        if " " in text and not equals:
            return None
        return self._abbreviation(word, name, attached)

    def _abbreviation(self, word: Word, name: str, attached: Word | None) -> tuple[Option, str, Word | None] | None:
        flags = self.table.by_flag
        matches: list[tuple[str, Word | None]]
        if name.startswith("--"):
            matches = [(flag, attached) for flag in flags if flag.startswith(name)]
        else:
            text = word.text
            matches = [(flag, None) for flag in flags if flag.startswith(text)]
            if text[:2] in flags:
                matches.append((text[:2], replace(word, text=text[2:])))
        if len(matches) > 1:
            shown = ", ".join(sorted(flag for flag, _ in matches)[:4])
            self.misuse("ambiguous", word, f"could be any of {shown}", "the option's whole name")
            self.unknowns.append(Unknown(f"{name} is ambiguous: {shown}", word.place))
            raise _UntakenError
        if not matches:
            self._unknown_option(word, name)
            raise _UntakenError
        flag, value = matches[0]
        return flags[flag], flag, value

    def _unknown_option(self, word: Word, name: str) -> None:
        if name in REMOVED:
            self.misuse("removed", word, f"{name} doesn't exist in vLLM {self.table.version}", REMOVED[name])
        else:
            self.misuse("unknown", word, f"vLLM {self.table.version} has no option {name}", "an option that it has")

    def run(self, words: Sequence[Word]) -> None:
        index = 0
        rest = False
        while index < len(words):
            word = words[index]
            index += 1
            if rest or (not word.unknown and not word.text.startswith("-")) or word.text == "-":
                self.positional.append(word)
                continue
            if word.text == "--":
                rest = True
                continue
            if word.unknown and not re.match(r"-[^=\s]+=", word.text):
                self.unknowns.append(Unknown(word.unknown, word.place))
                self.positional.append(word)
                continue
            try:
                found = self.option_of(word)
            except _UntakenError:
                # Its value, if it has one, belongs to it and not to the model.
                while index < len(words) and "=" not in word.text and not words[index].text.startswith("-"):
                    index += 1
                    break
                continue
            if found is None:
                self.positional.append(word)
                continue
            index = self._take(found, word, words, index)

    def _take(self, found: tuple[Option, str, Word | None], word: Word, words: Sequence[Word], index: int) -> int:
        option, flag, attached = found
        if option.kind in {"true", "switch"}:
            if attached is not None:
                self.misuse("unexpected", word, f"{flag} takes no value", _switch_spelling(option, flag, attached))
                self.given[option.dest] = Unknown(f"{flag} takes no value", word.place)
            else:
                self.given[option.dest] = Known(flag not in option.negative, word.place, word.text)
            return index
        values = [attached] if attached is not None else []
        if attached is None:
            most = 1 if option.nargs in {None, "?"} else len(words)
            while index < len(words) and len(values) < most and self._is_value(words[index]):
                values.append(words[index])
                index += 1
        if not values and option.nargs != "?":
            self.misuse("missing-value", word, f"{flag} needs a value", f"{flag}=VALUE")
            self.given[option.dest] = Unknown(f"{flag} has no value", word.place)
            return index
        self._store(option, flag, word, values)
        return index

    def _is_value(self, word: Word) -> bool:
        text = word.text
        return bool(word.unknown and not re.match(r"-[^=\s]+=", text)) or not (
            text.startswith("-") and text != "-" and not NEGATIVE_NUMBER.fullmatch(text) and " " not in text
        )

    def _store(self, option: Option, flag: str, word: Word, values: list[Word]) -> None:
        unknown = next((value for value in values if value.unknown), None)
        if unknown is not None:
            self.given[option.dest] = Unknown(unknown.unknown, unknown.place)
            return
        text = " ".join(value.text for value in values)
        place = values[0].place if values else word.place
        converted = [convert(option, value.text) for value in values]
        problem = next((why for _, why in converted if why), "")
        if problem:
            kind = "choice" if option.choices else "type"
            self.misuses.append(Misuse(kind, f"{flag}={text}"[:80], problem[0], problem[1], place))
            self.given[option.dest] = Unknown(problem[0], place)
            return
        result: Value = (
            tuple(str(value) for value, _ in converted)
            if option.nargs == "+"
            else converted[0][0]
            if converted
            else None
        )
        self.given[option.dest] = Known(result, place, text)


class _UntakenError(Exception):
    """The word isn't an option that can be taken."""


def _switch_spelling(option: Option, flag: str, value: Word) -> str:
    wanted = value.text.lower() in {"true", "1", "yes"}
    cleared = flag in option.negative
    if wanted != cleared:
        return next((f for f in option.flags if f not in option.negative), flag)
    return next(iter(sorted(option.negative)), "leave it out")


def resolve(words: Sequence[Word], table: Table, place: Place, open_file: OpenFile | None = None) -> CommandLine:
    """The options of the words after `vllm serve` (or after the server's module)."""
    parse = _Parse(table)
    prepared = with_config_file(list(words), parse, open_file)
    spelled = [_spelled(word, following) for word, following in zip_longest(prepared, prepared[1:])]
    parse.run(_merged_json([word for word in spelled if word.text or word.unknown], parse))
    model: Maybe[str] = None
    if parse.positional:
        first = parse.positional[0]
        model = Unknown(first.unknown, first.place) if first.unknown else Known(first.text, first.place, first.text)
    else:
        named = parse.given.get("model")
        if isinstance(named, Known):
            model = Known(str(named.value), named.place, named.text)
        elif named is not None:
            model = named
    for extra in parse.positional[1:]:
        if not extra.unknown:
            parse.misuse("unexpected", extra, f"{extra.text!r} belongs to no option", "one model and options")
    defaults = {option.dest: cast("Value", option.default) for option in table.options}
    return CommandLine(place, table.version, parse.given, model, tuple(parse.misuses), tuple(parse.unknowns), defaults)


def _spelled(word: Word, following: Word | None) -> Word:
    """Underscores in an option's name as dashes; -O2 and the like as their long form."""
    text = word.text
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        head, dot, tail = name.partition(".")
        return replace(word, text=f"{head.replace('_', '-')}{dot}{tail}{equals}{value}")
    if text == "-O" and following is not None and following.text in {"0", "1", "2", "3"}:
        return replace(word, text="--optimization-level")
    if re.fullmatch(r"-O=?[0-9a-z]+", text):
        return replace(word, text=f"--optimization-level={text[2:].lstrip('=')}")
    return word


def _merged_json(words: list[Word], parse: _Parse) -> list[Word]:
    """`--json-option.key value` of every such word as one JSON option at the end."""
    out: list[Word] = []
    merged: dict[str, tuple[dict[str, Any], Word]] = {}
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        name, equals, value = word.text.partition("=")
        if not word.text.startswith("-") or "." not in name or NEGATIVE_NUMBER.fullmatch(word.text):
            out.append(word)
            continue
        unknown = word.unknown
        if not equals:
            if index >= len(words):
                parse.misuse("missing-value", word, f"{name} needs a value", f"{name}=VALUE")
                continue
            value, unknown = words[index].text, unknown or words[index].unknown
            index += 1
        key, *path = name.rstrip("+").split(".")
        content, first = merged.get(key, ({}, word))
        _put(content, path, json_value(value.split(",") if name.endswith("+") else value))
        merged[key] = (content, replace(first, unknown=first.unknown or unknown))
    for key, (content, first) in merged.items():
        out.append(replace(first, text=f"{key}={json.dumps(content)}"))
    return out


def _put(content: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        inner = content.setdefault(part, {})
        if not isinstance(inner, dict):
            inner = content[part] = {}
        content = cast("dict[str, Any]", inner)
    content[path[-1]] = value
