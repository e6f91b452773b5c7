"""Pretended tokenizer and deterministic answers.

Tokens are cut by a regular expression (up to six letters or digits with the space before them, or one other
character), which gives English text about as many tokens as Llama's tokenizer. Answers are pseudo-words of two
syllables, each exactly one token, so that counting a returned answer gives the reported usage, and a conversation
sent back hits the prefix cache.
"""

import random
import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
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


@lru_cache(maxsize=65_536)
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


_ORDER: Final = tuple(random.Random(4900).sample(WORDS, len(WORDS)))
"""The words as answers go through them, each answer from a place of its own."""
_SPACED: Final = tuple(" " + word for word in _ORDER) * 2
"""Twice, so that every stretch shorter than the list is one slice."""
WORD_BYTES: Final = 5
"""Length of a word with the space before it."""
_ENCODED: Final = tuple(word.encode() for word in _SPACED)
_IDS: Final = tuple(token_id(word) for word in _SPACED)


@dataclass(frozen=True)
class Stop:
    """How an answer ends: with `finish_reason` after `length` tokens; `reason` is the stop string, if one hit."""

    length: int
    finish_reason: str
    reason: str | None = None


class Answer:
    """One deterministic answer, known as a whole beforehand: its tokens by number, from 0 to `stop.length` - 1.

    `seed` fixes the words; `natural_length` is where it would end by itself; `leading_space` says whether the first
    word follows text (completions) or starts a message (chat).
    """

    __slots__ = ("_cut", "_leading", "_start", "stop")

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
        self._start = seed % len(WORDS)
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

    @property
    def uncut(self) -> int:
        """Leading tokens that are whole words after a space, but for the first: what `encoded` may be asked for."""
        return 0 if self._cut is not None else self.stop.length - 1

    def text(self, number: int) -> str:
        """Text of one token; the natural end has none."""
        if self._cut is not None:
            return self._cut[number]
        return "" if self._ends(number) else self._word(number)

    def ids(self, start: int, end: int) -> list[int]:
        """Ids of the tokens from `start` to before `end`."""
        ids: list[int] = []
        for number in range(start, end):
            if self._ends(number):
                ids.append(_END_OF_TURN)
            elif number == 0 and not self._leading:
                ids.append(token_id(self._word(0)))
            else:
                ids.append(_IDS[(self._start + number) % len(WORDS)])
        return ids

    def encoded(self, start: int, end: int) -> tuple[bytes, ...]:
        """Text of the tokens from `start` (at least 1) to before `end` (at most `uncut`), as bytes."""
        first = (self._start + start) % len(WORDS)
        return _ENCODED[first : first + end - start]

    def _ends(self, number: int) -> bool:
        """Whether this token is the end of turn."""
        stop = self.stop
        return number == stop.length - 1 and stop.finish_reason == "stop" and stop.reason is None

    def _word(self, number: int) -> str:
        word = _SPACED[(self._start + number) % len(WORDS)]
        return word if number or self._leading else word[1:]

    def _look_ahead(self, stop_strings: Sequence[str], min_tokens: int, include_stop: bool) -> None:
        """Find the first stop string. The answer is known beforehand, so no text has to be held back."""
        texts: list[str] = []
        whole = ""
        for number in range(self.stop.length):
            text = self.text(number)
            start = len(whole)
            texts.append(text)
            whole += text
            if number < min_tokens:
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


def natural_length(seed: int, typical: int) -> int:
    """Where an answer ends by itself, tokens: between half and one and a half of `typical`, fixed by the seed."""
    low = max(1, typical // 2)
    return low + (seed * 2654435761 % 2**32) % max(1, typical)


def answer_seed(prompt: Sequence[int], seed: int | None, choice: int) -> int:
    """The seed of one choice: the same prompt, seed and choice give the same answer in every engine."""
    return crc32(array("q", prompt[-256:]).tobytes() + f"|{len(prompt)}|{seed}|{choice}".encode())
