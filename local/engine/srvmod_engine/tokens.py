"""Pretended tokenizer and deterministic answers.

Tokens are cut by a regular expression (up to six letters or digits with the space before them, or one other
character), which gives English text about as many tokens as Llama's tokenizer. Answers are pseudo-words of two
syllables, each exactly one token, so that counting a returned answer gives the reported usage, and a conversation
sent back hits the prefix cache.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from zlib import crc32

_PIECE: Final = re.compile(r" ?[^\W_]{1,6}|[^\w]|_", re.UNICODE)
_SYLLABLES: Final = tuple(consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou")
WORDS: Final = tuple(first + second for first in _SYLLABLES for second in _SYLLABLES)
"""Every pseudo-word (4,900), four letters each: plain ASCII that needs no escaping in JSON."""
_SPECIAL: Final = 128_000
_BOS: Final = 128_000
_HEADER: Final = (128_006, 128_007)
_END_OF_TURN: Final = 128_009


def token_id(piece: str) -> int:
    """A stable id below the special tokens' range."""
    return crc32(piece.encode("utf-8", "surrogatepass")) % _SPECIAL


def encode(text: str) -> list[int]:
    """Ids of a text. Every character belongs to exactly one token."""
    return [token_id(piece) for piece in _PIECE.findall(text)]


def pieces(text: str) -> list[str]:
    """The text's tokens as strings; joined they are the text."""
    return _PIECE.findall(text)


def encode_prompt(text: str, *, add_bos: bool = True) -> list[int]:
    """Ids of a completion prompt, with the begin-of-text token unless the client declines it."""
    return ([_BOS] if add_bos else []) + encode(text)


def encode_chat(messages: Sequence[tuple[str, str]], *, add_generation_prompt: bool = True) -> list[int]:
    """Ids of (role, content) pairs in Llama 3's chat template: header, two newlines, content, end of turn."""
    newlines = encode("\n\n")
    ids = [_BOS]
    for role, content in messages:
        ids += [_HEADER[0], *encode(role), _HEADER[1], *newlines, *encode(content.strip()), _END_OF_TURN]
    if add_generation_prompt:
        ids += [_HEADER[0], *encode("assistant"), _HEADER[1], *newlines]
    return ids


_WORD_IDS: Final = tuple(token_id(" " + word) for word in WORDS)
_FIRST_IDS: Final = tuple(token_id(word) for word in WORDS)


@dataclass(frozen=True)
class Stop:
    """How an answer ends: with `finish_reason` after `length` tokens; `reason` is the stop string, if one hit."""

    length: int
    finish_reason: str
    reason: str | None = None


class Answer:
    """One deterministic answer: `next()` gives its tokens one by one.

    `seed` fixes the words; `natural_length` is where it would end by itself; `leading_space` says whether the first
    word follows text (completions) or starts a message (chat).
    """

    __slots__ = ("_count", "_cut", "_leading", "_state", "stop")

    def __init__(
        self,
        seed: int,
        *,
        max_tokens: int,
        natural_length: int,
        stop_strings: Sequence[str] = (),
        min_tokens: int = 0,
        leading_space: bool = False,
        include_stop: bool = False,
    ) -> None:
        self._state = seed & 0x7FFFFFFF
        self._count = 0
        self._leading = leading_space
        self._cut: list[str] | None = None
        natural_length = max(natural_length, min_tokens + 1)
        # A natural end costs one token (end of turn) that carries no text, as in vLLM's usage.
        if natural_length <= max_tokens:
            self.stop = Stop(natural_length, "stop")
        else:
            self.stop = Stop(max_tokens, "length")
        if stop_strings:
            self._look_ahead(stop_strings, min_tokens, include_stop)

    def next(self) -> tuple[int, str]:
        """Id and text of the next token; the natural end is the end-of-turn token with empty text."""
        self._count += 1
        if self.stop.finish_reason == "stop" and self.stop.reason is None and self._count == self.stop.length:
            return _END_OF_TURN, ""
        index = self._draw()
        first = self._count == 1 and not self._leading
        text = WORDS[index] if first else " " + WORDS[index]
        if self._cut is not None:
            text = self._cut[self._count - 1]
        return (_FIRST_IDS if first else _WORD_IDS)[index], text

    def _draw(self) -> int:
        self._state = (self._state * 1103515245 + 12345) & 0x7FFFFFFF
        return (self._state >> 8) % len(WORDS)

    def _look_ahead(self, stop_strings: Sequence[str], min_tokens: int, include_stop: bool) -> None:
        """Find the first stop string. The answer is known beforehand, so no text has to be held back."""
        saved = self._state
        texts: list[str] = []
        whole = ""
        for _ in range(self.stop.length):
            self._count += 1
            at_end = self.stop.finish_reason == "stop" and self._count == self.stop.length
            index = 0 if at_end else self._draw()
            first = self._count == 1 and not self._leading
            text = "" if at_end else (WORDS[index] if first else " " + WORDS[index])
            start = len(whole)
            texts.append(text)
            whole += text
            if self._count <= min_tokens:
                continue
            hits = [
                (position, stop)
                for stop in stop_strings
                if (position := whole.find(stop, max(0, start - len(stop) + 1))) >= 0
            ]
            if hits:
                position, stop = min(hits)
                keep = position + (len(stop) if include_stop else 0)
                texts[-1] = whole[start:keep] if keep > start else ""
                # A stop string may have begun in an earlier token: cut that one too.
                excess = start - keep
                for back in range(len(texts) - 2, -1, -1):
                    if excess <= 0:
                        break
                    taken = min(excess, len(texts[back]))
                    texts[back] = texts[back][: len(texts[back]) - taken]
                    excess -= taken
                self._cut = texts
                self.stop = Stop(len(texts), "stop", stop)
                break
        self._state = saved
        self._count = 0


def natural_length(seed: int, typical: int) -> int:
    """Where an answer ends by itself, tokens: between half and one and a half of `typical`, fixed by the seed."""
    low = max(1, typical // 2)
    return low + (seed * 2654435761 % 2**32) % max(1, typical)


def answer_seed(prompt: Sequence[int], seed: int | None, choice: int) -> int:
    """The seed of one choice: the same prompt, seed and choice give the same answer in every engine."""
    text = ",".join(map(str, prompt[-256:])) + f"|{len(prompt)}|{seed}|{choice}"
    return crc32(text.encode())
