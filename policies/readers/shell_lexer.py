"""Shell text as words and operators: quotes, comments, continuations, expansions, here-documents."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
BRACED = re.compile(r"([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?])(\[[@*]\])?(?:(:?[-=+?])(.*))?", re.DOTALL)
OPERATOR = re.compile(r"&&|\|\||;;|<<-?|&>>?|>>|>&|<&|[;&|()<>\n]")
PLAIN = re.compile(r"[^\s'\"\\$`;&|()<>]+")
PLAIN_IN_QUOTES = re.compile(r'[^"\\$`]+')
MOST_NESTED = 20


@dataclass(slots=True)
class Part:
    """A piece of a word. `kind`: `text`, `variable` or `unknown` (then `text` says why)."""

    kind: str
    text: str
    quoted: bool
    array: bool = False
    operator: str = ""
    alternative: list[Part] = field(default_factory=list["Part"])


@dataclass(slots=True)
class Lexeme:
    """A word (its parts) or an operator, with its line from 0."""

    line: int
    operator: str = ""
    parts: list[Part] = field(default_factory=list[Part])

    @property
    def bare(self) -> str:
        """The word's text where it is plain and unquoted; empty otherwise."""
        return self.parts[0].text if len(self.parts) == 1 and self.parts[0].kind == "text" else ""


class Lexer:
    """Splits a script. Never fails: what it doesn't understand becomes an `unknown` part."""

    def __init__(self, text: str, depth: int = 0) -> None:
        self.text = text
        self.position = 0
        self.line = 0
        self.depth = depth
        self.here: list[str] = []
        self.lexemes: list[Lexeme] = []

    def run(self) -> list[Lexeme]:
        """All lexemes."""
        while self.position < len(self.text):
            char = self.text[self.position]
            if char in " \t\r":
                self.position += 1
            elif self.text.startswith("\\\n", self.position):
                self.position += 2
                self.line += 1
            elif char == "#":
                end = self.text.find("\n", self.position)
                self.position = len(self.text) if end < 0 else end
            elif match := OPERATOR.match(self.text, self.position):
                self._operator(match[0])
            else:
                self._word()
        return self.lexemes

    def _operator(self, operator: str) -> None:
        self.lexemes.append(Lexeme(self.line, operator))
        self.position += len(operator)
        if operator == "\n":
            self.line += 1
            self._skip_here_documents()

    def _skip_here_documents(self) -> None:
        while self.here:
            end = self.here.pop(0)
            while self.position < len(self.text):
                stop = self.text.find("\n", self.position)
                stop = len(self.text) if stop < 0 else stop
                one = self.text[self.position : stop]
                self.position = min(stop + 1, len(self.text))
                self.line += 1
                if one.strip() == end:
                    break

    def _word(self) -> None:
        word = Lexeme(self.line)
        while self.position < len(self.text):
            char = self.text[self.position]
            if char in " \t\r" or OPERATOR.match(self.text, self.position):
                break
            if char == "'":
                word.parts.append(Part("text", self._single(), True))
            elif char == '"':
                word.parts.extend(self._double())
            elif char == "\\":
                self._escape(word)
            elif char == "$":
                word.parts.append(self._dollar(False))
            elif char == "`":
                word.parts.append(self._backticks(False))
            elif match := PLAIN.match(self.text, self.position):
                word.parts.append(Part("text", match[0], False))
                self.position = match.end()
            else:
                word.parts.append(Part("text", char, False))
                self.position += 1
        word.parts = _joined(word.parts)
        if self.lexemes and self.lexemes[-1].operator in {"<<", "<<-"}:
            self.here.append("".join(part.text for part in word.parts))
        self.lexemes.append(word)

    def _escape(self, word: Lexeme) -> None:
        following = self.text[self.position + 1 : self.position + 2]
        self.position += 2
        if following == "\n":
            self.line += 1
        elif following:
            word.parts.append(Part("text", following, True))

    def _single(self) -> str:
        end = self.text.find("'", self.position + 1)
        end = len(self.text) if end < 0 else end
        inner = self.text[self.position + 1 : end]
        self.line += inner.count("\n")
        self.position = end + 1
        return inner

    def _double(self) -> list[Part]:
        parts = [Part("text", "", True)]
        self.position += 1
        while self.position < len(self.text):
            char = self.text[self.position]
            if char == '"':
                self.position += 1
                break
            if char == "\\" and self.text[self.position + 1 : self.position + 2] in {'"', "\\", "$", "`", "\n"}:
                following = self.text[self.position + 1]
                self.line += following == "\n"
                parts.append(Part("text", "" if following == "\n" else following, True))
                self.position += 2
            elif char == "$":
                parts.append(self._dollar(True))
            elif char == "`":
                parts.append(self._backticks(True))
            elif match := PLAIN_IN_QUOTES.match(self.text, self.position):
                self.line += match[0].count("\n")
                parts.append(Part("text", match[0], True))
                self.position = match.end()
            else:
                parts.append(Part("text", char, True))
                self.position += 1
        return _joined(parts)

    def _dollar(self, quoted: bool) -> Part:
        rest = self.text[self.position + 1 :][:1]
        if rest == "'" and not quoted:
            self.position += 1
            inner = self._single()
            return Part("unknown", "uses $'…' quoting", True) if "\\" in inner else Part("text", inner, True)
        if rest == "(":
            inner = self._balanced("(", ")", self.position + 1)
            return Part("unknown", f"comes from a command: $({inner[:40]})", quoted)
        if rest == "{":
            return self._braced(self._balanced("{", "}", self.position + 1), quoted)
        if match := NAME.match(self.text, self.position + 1):
            self.position = match.end()
            return Part("variable", match[0], quoted)
        if rest and rest in "@*#?0123456789":
            self.position += 2
            return Part("variable", rest, quoted, array=rest in "@*")
        self.position += 1
        return Part("text", "$", quoted)

    def _braced(self, inner: str, quoted: bool) -> Part:
        match = BRACED.fullmatch(inner)
        if match is None or self.depth >= MOST_NESTED:
            return Part("unknown", f"uses ${{{inner[:40]}}}", quoted)
        name, index, operator, word = match.groups()
        alternative: list[Part] = []
        if operator:
            # Quotes and blanks in the alternative belong to one word.
            nested = Lexer(f'"{word}"' if quoted else word.replace(" ", "\\ "), self.depth + 1).run()
            alternative = nested[0].parts if nested else []
        array = bool(index) or name in {"@", "*"}
        return Part("variable", name, quoted, array=array, operator=operator or "", alternative=alternative)

    def _balanced(self, opening: str, closing: str, start: int) -> str:
        depth, position = 0, start
        while position < len(self.text):
            char = self.text[position]
            if char == "\\":
                position += 1
            elif char == "'" and opening == "(":
                position = max(position, self.text.find("'", position + 1))
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
                if depth == 0:
                    break
            position += 1
        inner = self.text[start + 1 : position]
        self.line += inner.count("\n")
        self.position = position + 1
        return inner

    def _backticks(self, quoted: bool) -> Part:
        end = self.text.find("`", self.position + 1)
        end = len(self.text) if end < 0 else end
        self.line += self.text.count("\n", self.position, end)
        self.position = end + 1
        return Part("unknown", "comes from a command in backticks", quoted)


def _joined(parts: list[Part]) -> list[Part]:
    """Neighbouring pieces of text as one."""
    out: list[Part] = []
    for part in parts:
        if out and part.kind == "text" and out[-1].kind == "text" and out[-1].quoted == part.quoted:
            out[-1].text += part.text
        else:
            out.append(part)
    return out
