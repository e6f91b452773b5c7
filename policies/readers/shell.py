"""Commands of a shell script with their words, as far as they can be established without running it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from srvmod.policies.facts import Fact, Known, Place, Unknown
from srvmod.policies.readers.shell_builtins import BETWEEN, CLOSING, OPENING, REDIRECTIONS, written
from srvmod.policies.readers.shell_lexer import Lexeme, Lexer, Part
from srvmod.policies.readers.words import Word

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
MOST_SCRIPT = 1_000_000
MOST_WORDS = 20_000


@dataclass(frozen=True, slots=True)
class Command:
    """One simple command. `assigned` are the variables set in front of it and exported before it."""

    words: tuple[Word, ...]
    assigned: Mapping[str, Fact[str]]
    removed: frozenset[str] = frozenset()
    """Variables that the script took away before it."""
    open_environment: str = ""
    """Why the command may see variables that nobody knows: a script was sourced that isn't in the input."""


@dataclass(frozen=True, slots=True)
class Sourced:
    """A script that another one reads into itself."""

    text: str
    place_of: Callable[[int], Place]


@dataclass
class Shell:
    """The state of a script on its way: variables, arrays, positional parameters."""

    variables: dict[str, Fact[str]]
    positional: Sequence[Word]
    place_of: Callable[[int], Place]
    unknown_environment: str = ""
    source: Callable[[str], Sourced | None] = lambda _: None
    """Finds the text of a sourced script."""
    sourced: str = ""
    arrays: dict[str, list[Word]] = field(default_factory=dict[str, list[Word]])
    own: set[str] = field(default_factory=set[str])
    """Names that the script itself sets or exports."""
    gone: set[str] = field(default_factory=set[str])
    """Names that it unsets."""
    commands: list[Command] = field(default_factory=list[Command])
    depth: int = 0
    words_made: int = 0
    sources_left: int = 8

    def run(self, script: str) -> list[Command]:
        """Every simple command of the script, those in branches too, in order."""
        if len(script) > MOST_SCRIPT:
            self.commands.append(Command((Word("", self.place_of(0), "is too long a script"),), {}))
            return self.commands
        pending: list[Lexeme] = []
        conditional = False
        lexemes = Lexer(script.replace("\r\n", "\n")).run()
        index = 0
        while index < len(lexemes):
            one = lexemes[index]
            index += 1
            if one.operator in REDIRECTIONS:
                # `2>` leaves the number of the stream as a word of its own.
                if pending and pending[-1].bare.isdigit() and pending[-1].line == one.line:
                    pending.pop()
                if one.operator in {"<", ">"} and index < len(lexemes) and lexemes[index].operator == "(":
                    pending.append(Lexeme(one.line, parts=[Part("unknown", "it comes from a command", False)]))
                index += 1
            elif one.operator == "(" and pending and pending[-1].parts and _ends_in_equals(pending[-1]):
                close = next((i for i in range(index, len(lexemes)) if lexemes[i].operator == ")"), len(lexemes))
                self._array(pending.pop(), lexemes[index:close], conditional)
                index = close + 1
            elif one.operator:
                self._simple(pending, conditional)
                pending = []
                conditional = one.operator in {"&&", "||"}
            else:
                pending.append(one)
        self._simple(pending, conditional)
        return self.commands

    def _simple(self, lexemes: list[Lexeme], conditional: bool) -> None:  # noqa: PLR0912 - one per builtin
        while lexemes and (lexemes[0].bare in OPENING | CLOSING | BETWEEN):
            word = lexemes[0].bare
            self.depth += (word in OPENING) - (word in CLOSING)
            self._write(lexemes)
            loops = word in {"for", "select", "case"}
            lexemes = [] if loops else lexemes[1:]
        branch = conditional or self.depth > 0
        local: dict[str, Fact[str]] = {}
        first = lexemes[0].bare if lexemes else ""
        declares = first in {"export", "declare", "local", "readonly", "typeset"}
        if declares:
            lexemes = [one for one in lexemes[1:] if not one.bare.startswith("-")]
        while lexemes:
            assignment = self._assignment(lexemes[0]) or (self._named(lexemes[0]) if declares else None)
            if assignment is None:
                if declares:
                    self.own.add(lexemes[0].bare)
                    lexemes = lexemes[1:]
                    continue
                break
            name, value = assignment
            local[name] = value
            lexemes = lexemes[1:]
        if not lexemes:
            for name, value in local.items():
                self._set(name, value, branch)
            return
        if first == "unset":
            for one in lexemes[1:]:
                if branch and one.bare in self.variables:
                    why = f"variable {one.bare} is taken away on a condition"
                    self.variables[one.bare] = Unknown(why, self.place_of(one.line))
                else:
                    self.variables.pop(one.bare, None)
                    self.gone.add(one.bare)
                self.own.add(one.bare)
            return
        self._write(lexemes)
        words = tuple(word for one in lexemes for word in self.expand(one))
        if words and words[0].text == "set" and "--" in [word.text for word in words[1:3]]:
            split = [word.text for word in words].index("--")
            self.positional = words[split + 1 :]
            return
        if words and words[0].text == "shift":
            self.positional = self.positional[1:]
            return
        if words and words[0].text in {"source", "."} and len(words) > 1:
            self._source(words[1])
            return
        exported = {name: self.variables[name] for name in self.own if name in self.variables}
        if words:
            removed = frozenset(name for name in self.gone if name not in self.variables)
            self.commands.append(Command(words, {**exported, **local}, removed, self.sourced))

    def _write(self, lexemes: list[Lexeme]) -> None:
        for name in written(lexemes):
            why = f"the script sets {name} by `{lexemes[0].bare}`"
            self.variables[name] = Unknown(why, self.place_of(lexemes[0].line))

    def _named(self, one: Lexeme) -> tuple[str, Fact[str]] | None:
        """An exported variable whose name is made of others; one of unknown name may be any."""
        if all(part.kind == "text" for part in one.parts):
            return None
        word = self._joined(one.parts, self.place_of(one.line))
        match = ASSIGNMENT.match(word.text)
        if word.unknown or match is None:
            self.sourced = self.sourced or "the script exports a variable whose name isn't known"
            return None
        return match[1], Known(word.text[match.end() :], word.place)

    def _source(self, named: Word) -> None:
        found = None if named.unknown else self.source(named.text)
        if found is not None and self.sources_left > 0:
            self.sources_left -= 1
            before, self.place_of = self.place_of, found.place_of
            self.run(found.text)
            self.place_of = before
        elif not named.text.endswith("/activate"):  # Of a Python environment: it sets only paths.
            self.sourced = f"{named.text or 'a script'} is sourced and isn't in the input"
            self.unknown_environment = self.unknown_environment or self.sourced

    def _set(self, name: str, value: Fact[str], branch: bool) -> None:
        place = value.place
        if branch and self.variables.get(name) != value:
            value = Unknown(f"variable {name} is set on a condition", place)
        self.variables[name] = value
        self.own.add(name)

    def _assignment(self, one: Lexeme) -> tuple[str, Fact[str]] | None:
        if not one.parts or one.parts[0].kind != "text" or one.parts[0].quoted:
            return None
        match = ASSIGNMENT.match(one.parts[0].text)
        if match is None:
            return None
        head = one.parts[0]
        rest = [Part("text", head.text[match.end() :], True), *one.parts[1:]]
        word = self._joined(rest, self.place_of(one.line))
        value: Fact[str] = Unknown(word.unknown, word.place) if word.unknown else Known(word.text, word.place)
        if match[2] and isinstance(value, Known):
            before = self.variables.get(match[1])
            if isinstance(before, Unknown):
                value = before
            elif before is not None:
                value = Known(before.value + value.value, value.place)
        return match[1], value

    def _array(self, head: Lexeme, items: list[Lexeme], conditional: bool) -> None:
        match = ASSIGNMENT.match(head.parts[0].text)
        if match is None:
            return
        words = [word for one in items if not one.operator for word in self.expand(one)]
        if conditional or self.depth:
            words = [Word("", self.place_of(head.line), f"array {match[1]} is set on a condition")]
        before = self.arrays.get(match[1], []) if match[2] else []
        self.arrays[match[1]] = [*before, *words]

    def expand(self, one: Lexeme) -> list[Word]:
        """The words that a lexeme becomes: unquoted variables are split at blanks, arrays give several."""
        place = self.place_of(one.line)
        self.words_made += 1
        if self.words_made > MOST_WORDS:
            return [Word("", place, "makes too many words")]
        filled = [part for part in one.parts if part.kind != "text" or part.text]
        if len(filled) == 1 and filled[0].kind == "variable" and filled[0].array:
            part = filled[0]
            if part.text in {"@", "*"}:
                return list(self.positional)
            return self.arrays.get(part.text, [Word("", place, f"array {part.text} isn't set here")])
        out: list[Word] = []
        text, unknown, started = "", "", False
        for part in one.parts:
            value, why = self._part(part)
            unknown = unknown or why
            if part.kind == "variable" and not part.quoted and not why:
                pieces = value.split()
                if value[:1].isspace() and started:
                    out.append(Word(text, place, unknown))
                    text, unknown, started = "", "", False
                for piece in pieces[:-1]:
                    out.append(Word(text + piece, place, unknown))
                    text, unknown = "", ""
                text += pieces[-1] if pieces else ""
                started = started or bool(pieces)
                if value[-1:].isspace() and pieces:
                    out.append(Word(text, place, unknown))
                    text, unknown, started = "", "", False
            else:
                text += value
                started = True
        if started or unknown:
            out.append(Word(text, place, unknown))
        return out

    def _joined(self, parts: Sequence[Part], place: Place) -> Word:
        text, unknown = "", ""
        for part in parts:
            value, why = self._part(part)
            text += value
            unknown = unknown or why
        return Word(text, place, unknown)

    def _part(self, part: Part) -> tuple[str, str]:
        """(text, why it isn't known)."""
        if part.kind == "text":
            return part.text, ""
        if part.kind == "unknown":
            return "", part.text
        if part.array:
            words = self.positional if part.text in {"@", "*"} else self.arrays.get(part.text, [])
            return " ".join(word.text for word in words), next((w.unknown for w in words if w.unknown), "")
        if part.text.isdigit():
            at = int(part.text) - 1
            found: Fact[str] | None = None
            if 0 <= at < len(self.positional):
                word = self.positional[at]
                found = Unknown(word.unknown, word.place) if word.unknown else Known(word.text, word.place)
        else:
            found = self.variables.get(part.text)
        return self._operated(part, found)

    def _operated(self, part: Part, found: Fact[str] | None) -> tuple[str, str]:
        if isinstance(found, Unknown):
            return "", f"${part.text}: {found.reason}"
        colon = part.operator.startswith(":")
        missing = found is None or (colon and not found.value)
        if found is None and self.unknown_environment:
            return "", f"${part.text}: {self.unknown_environment}"
        if part.operator.endswith("+"):
            return ("", "") if missing else self._all(part.alternative)
        if missing and part.operator.endswith(("-", "=")):
            value, why = self._all(part.alternative)
            if part.operator.endswith("=") and not why:
                self.variables[part.text] = Known(value, self.place_of(0))
            return value, why
        if found is None:
            # Set by the image, by an agent, or not at all: nobody can say from here.
            return "", f"${part.text} isn't set in the input"
        return found.value, ""

    def _all(self, parts: Sequence[Part]) -> tuple[str, str]:
        pairs = [self._part(part) for part in parts]
        return "".join(text for text, _ in pairs), next((why for _, why in pairs if why), "")


def _ends_in_equals(one: Lexeme) -> bool:
    match = ASSIGNMENT.fullmatch(one.parts[0].text) if len(one.parts) == 1 else None
    return match is not None
