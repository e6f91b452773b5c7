"""What a container runs: its command and arguments, shells and scripts looked into."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from srvmod.policies.facts import Fact, Place, Unknown
from srvmod.policies.readers.environment import ConfigMaps, Environment, mounted_file
from srvmod.policies.readers.pods import gpu_amounts
from srvmod.policies.readers.prefixes import without_env
from srvmod.policies.readers.programs import PYTHON, Program, find, of_image, script_of
from srvmod.policies.readers.shell import Shell, Sourced
from srvmod.policies.readers.tree import Cursor, place_in_text
from srvmod.policies.readers.words import Word

SHELL = re.compile(r"(?:.*/)?(?:ba|da|a|z|k)?sh")
COMMAND_FLAG = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
WRAPPERS = {"exec", "env", "tini", "dumb-init", "nohup", "sudo", "numactl", "nice", "timeout", "stdbuf", "taskset"}
TAKE_SCRIPTS = {"su", "runuser", "script", "flock", "sg", "unbuffer"}
"""Programs that hand a text to a shell behind -c."""
HARMLESS_MODULES = {"pip", "venv", "http.server", "json.tool", "vllm"}
"""Python modules that serve no model; `vllm` serves with its sub-command only, and that is found before."""
MOST_SHELLS = 8

PlaceOf = Callable[[int], Place]
"""Place of a line of a script, counted from 0."""


@dataclass(frozen=True, slots=True)
class Run:
    """An engine that a container runs, and the variables that its script sets for it."""

    program: Program
    assigned: dict[str, Fact[str]] = field(default_factory=dict[str, "Fact[str]"])
    opened: Unknown | None = None
    """Why its script may set more."""
    removed: frozenset[str] = frozenset()
    """Variables of the container that it takes away."""


@dataclass
class Container:
    """A container and what is needed to understand its command."""

    cursor: Cursor
    spec: Cursor
    namespace: str
    maps: ConfigMaps
    environment: Environment
    runs: list[Run] = field(default_factory=list[Run])
    unknowns: list[Unknown] = field(default_factory=list[Unknown])
    """Commands that can't be established and may start an engine."""

    def read(self) -> None:
        """Fill `runs` and `unknowns`."""
        command, args = self._list("command"), self._list("args")
        if command:
            self._words([*command, *args], {}, 0)
            return
        image = self.cursor["image"].raw()
        if args and SHELL.fullmatch(args[0].text):
            self._words(args, {}, 0)
            return
        gpus = any(True for _ in gpu_amounts(self.cursor))
        program = of_image(image, args, gpus)
        if program is not None:
            self.runs.append(Run(_placed(program, self.cursor.place)))
        elif args:
            self._words(args, {}, 0)

    def open_file(self, path: str) -> Cursor | Unknown | None:
        """A file that a ConfigMap of the input mounts."""
        return mounted_file(path, self.cursor, self.spec, self.namespace, self.maps)

    def _list(self, key: str) -> list[Word]:
        cursor = self.cursor[key]
        if unknown := cursor.opaque:
            return [Word("", unknown.place, unknown.reason)]
        items = list(cursor.items())
        if not items and cursor.raw():
            items = [cursor]  # A text where a list belongs: the API server refuses it, a reviewer still sees it.
        words: list[Word] = []
        for item in items:
            fact = item.string()
            if isinstance(fact, Unknown):
                words.append(Word(item.raw(), fact.place, fact.reason))
            elif fact is not None:
                words.append(self.environment.expand(fact.value, fact.place))
            else:
                words.append(Word("", item.place))
        return words

    def _words(self, words: Sequence[Word], assigned: dict[str, Fact[str]], depth: int) -> None:
        """One command, as the kernel or a shell would start it."""
        if depth > MOST_SHELLS:
            self.unknowns.append(Unknown("starts shells in shells without end", self.cursor.place))
            return
        plain = without_env(words)
        if plain.assigned or plain.removed:
            assigned = {name: fact for name, fact in assigned.items() if name not in plain.removed} | plain.assigned
            before = len(self.runs)
            self._words(plain.words, assigned, depth + 1)
            self._without(plain.removed, before)
            return
        words = plain.words
        start = next((i for i, word in enumerate(words) if SHELL.fullmatch(word.text)), None)
        if start is not None and all(_wrapper(word.text) for word in words[:start]):
            self._shell(words[start + 1 :], assigned, depth)
            return
        program = find(words)
        if program is not None:
            self.runs.append(Run(program, assigned))
            return
        at = next((i for i, word in enumerate(words) if not _wrapper(word.text)), None)
        if at is None:
            return
        first, rest = words[at], words[at + 1 :]
        name = first.text.rpartition("/")[2]
        if first.unknown:
            self.unknowns.append(Unknown(first.unknown, first.place))
        elif PYTHON.fullmatch(first.text):
            self._python(first, rest)
        elif name in TAKE_SCRIPTS and (script := next((b for a, b in pairwise(rest) if a.text == "-c"), None)):
            self._script(script.text, [], lambda _: script.place, assigned, depth + 1)
        else:
            self._script_file(first.text, rest, first.place, assigned, depth)

    def _without(self, names: frozenset[str], first: int) -> None:
        """Take variables away from the runs that were found from an index on."""
        if names:
            self.runs[first:] = [replace(run, removed=run.removed | names) for run in self.runs[first:]]

    def _python(self, first: Word, words: Sequence[Word]) -> None:
        """A program of Python's own: it may start an engine, and nobody reads it here."""
        index = script_of(words)
        word = words[index] if index < len(words) else Word("-", first.place)
        if word.text == "-m" and index + 1 < len(words):
            word = words[index + 1]
            if word.text in HARMLESS_MODULES:
                return
        shown = {"-c": "a program in its own words", "-": "a program from its input"}.get(word.text, word.text)
        self.unknowns.append(Unknown(f"Python runs {shown}, which isn't read", word.place))

    def _shell(self, words: Sequence[Word], assigned: dict[str, Fact[str]], depth: int) -> None:
        index = 0
        while index < len(words) and words[index].text.startswith(("-", "+")):
            text = words[index].text
            index += 1
            if COMMAND_FLAG.fullmatch(text) and index < len(words):
                script = words[index]
                if script.unknown:
                    self.unknowns.append(Unknown(script.unknown, script.place))
                # The word after the script is its name ($0), those behind it its parameters.
                self._script(script.text, words[index + 2 :], _lines_of(self.cursor, script), assigned, depth)
                return
            if text in {"-o", "+o", "-O"}:
                index += 1
        if index < len(words) and words[index].unknown:
            self.unknowns.append(Unknown(f"a shell's script isn't known: {words[index].unknown}", words[index].place))
        elif index < len(words):
            self._script_file(words[index].text, words[index + 1 :], words[index].place, assigned, depth)
        elif depth:
            # A container's own shell without a script waits for somebody; one in a script reads what comes in a pipe.
            self.unknowns.append(Unknown("a shell reads its commands from its input", self.cursor.place))

    def _script_file(
        self, path: str, words: Sequence[Word], place: Place, assigned: dict[str, Fact[str]], depth: int
    ) -> None:
        found = self.open_file(path)
        if isinstance(found, Cursor) and found.raw():
            self._script(found.raw(), words, lambda line: place_in_text(found, line), assigned, depth)
        elif isinstance(found, Unknown):
            self.unknowns.append(Unknown(f"runs {path}: {found.reason}", place))
        elif path.endswith((".sh", ".bash")) or "/" in path:
            self.unknowns.append(Unknown(f"runs {path}, which isn't in the input", place))

    def _script(
        self, script: str, words: Sequence[Word], place_of: PlaceOf, assigned: dict[str, Fact[str]], depth: int
    ) -> None:
        variables = {**self.environment.values, **assigned}
        missing = self.environment.unknown.reason if self.environment.unknown else ""
        shell = Shell(variables, words, place_of, missing, source=self._sourced, own=set(assigned))
        for command in shell.run(script):
            if command.words and command.words[0].text == "eval":
                joined = Word(" ".join(word.text for word in command.words[1:]), command.words[0].place)
                why = next((word.unknown for word in command.words if word.unknown), "")
                if why:
                    self.unknowns.append(Unknown(why, joined.place))
                else:
                    self._script(joined.text, [], lambda _, place=joined.place: place, assigned, depth + 1)
                continue
            before = len(self.runs)
            self._words(command.words, {**assigned, **command.assigned}, depth + 1)
            self._without(command.removed, before)
            if command.open_environment:
                opened = Unknown(command.open_environment, command.words[0].place)
                self.runs[before:] = [replace(run, opened=run.opened or opened) for run in self.runs[before:]]

    def _sourced(self, path: str) -> Sourced | None:
        found = self.open_file(path)
        if isinstance(found, Cursor) and found.raw():
            return Sourced(found.raw(), lambda line: place_in_text(found, line))
        return None


def _wrapper(text: str) -> bool:
    name = text.rpartition("/")[2]
    return name in WRAPPERS or text.startswith("-") or "=" in text or text.replace(".", "").isdigit()


def _lines_of(container: Cursor, script: Word) -> PlaceOf:
    """Places of a script's lines: exact where the script is a literal block scalar."""
    for key in ("command", "args"):
        for item in container[key].items():
            if item.place == script.place:
                return lambda line, item=item: place_in_text(item, line)
    return lambda line, place=script.place: place


def _placed(program: Program, place: Place) -> Program:
    return program if program.words else Program(program.software, (), Word("", place))
