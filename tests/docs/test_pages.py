"""Prose that can be wrong is checked: commands exist, marked ones run, links lead somewhere."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, Block, blocks, pages
from tests.docs.commands import problem, simple_commands

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)")
INLINE = re.compile(r"`((?:srvmod|make) [^`]+)`")
TAGS = {"", "run", "stack"}
PRICES_MISSING = 1
ALLOWED = {".venv/bin/srvmod cost --env prod --json": {0, PRICES_MISSING}}
"""Exit codes other than 0 that a command of a page may have, and says so beside it."""


def test_there_is_prose_for_the_first_day_and_for_each_alarm() -> None:
    names = {page.name for page in pages()}
    assert {"first-day.md", "outputs.md", "engine-not-ready.md", "node-never-comes.md", "weights-not-verified.md",
            "itl-over-target.md", "envoy-5xx.md", "rotate-a-key.md", "scale-by-hand.md", "drain-a-node.md",
            "upgrade.md", "gateway-not-updated.md", "engines-spread.md"} <= names  # fmt: skip


@pytest.mark.parametrize("block", blocks(), ids=lambda block: block.name)
def test_every_command_exists(block: Block) -> None:
    assert block.tag in TAGS, f"{block.name}: tag {block.tag!r}; allowed: {sorted(TAGS)}"
    wrong = [told for words in simple_commands(block.text) if (told := problem(words))]
    assert not wrong, f"{block.name}: {wrong}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_named_in_sentences_exist(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    wrong = [f"`{said}`: {told}" for said in INLINE.findall(text) for words in simple_commands(said)
             if (told := problem(words))]  # fmt: skip
    assert not wrong, wrong


@pytest.mark.parametrize("block", blocks(tag="run"), ids=lambda block: block.name)
def test_marked_commands_run(block: Block) -> None:
    for command in block.text.strip().splitlines():
        done = subprocess.run(
            ["bash", "-c", command], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode in ALLOWED.get(command, {0}), f"{command}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
        assert done.stdout.strip(), command


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    gone = [link for link in LINK.findall(text) if "://" not in link and not (page.parent / link).exists()]
    assert not gone, gone


def test_a_wrong_command_is_noticed() -> None:
    texts = {
        "srvmod renders": "no command renders",
        ".venv/bin/srvmod render --chek": "no option --chek",
        "srvmod local upp": "no command upp",
        "make everything": "no target everything",
        "pulumi fly": "isn't among",
        "pulumi up --plann x": "no option --plann",
        "python -m pytest tests/nowhere -q": "doesn't exist",
        "make check && srvmod renders": "no command renders",
        "X=1 srvmod renders  # comment": "no command renders",
        "frobnicate": "no command of this repository",
    }
    for text, expected in texts.items():
        found = [told for words in simple_commands(text) if (told := problem(words))]
        assert len(found) == 1, text
        assert expected in found[0]
