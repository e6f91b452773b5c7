"""Fenced blocks of the project's prose, with what their tag says about running them.

`sh`: its commands must exist. `sh run`: also run by the fast tests, from the repository. `sh stack`: also run against
the local stack by the acceptance tests.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
SHELL = ("", "sh", "bash")


@dataclass(frozen=True)
class Block:
    """A block of shell commands."""

    file: Path
    line: int
    tag: str
    text: str

    @property
    def name(self) -> str:
        return f"{self.file.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """Every page of prose, wherever it lies."""
    folders = ("docs", "examples", "local", "tools", "policies", "images")
    return [ROOT / "README.md", *sorted(page for folder in folders for page in (ROOT / folder).rglob("*.md"))]


def blocks(*, tag: str | None = None) -> list[Block]:
    """Shell blocks of all pages; with `tag` only those marked with it."""
    found = [block for page in pages() for block in _of(page)]
    return [block for block in found if tag is None or block.tag == tag]


def _of(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        language, _, tag = match[1].strip().partition(" ")
        if language in SHELL:
            yield Block(page, text.count("\n", 0, match.start()) + 1, tag, match[2])
