"""What README.md and the runbooks say about a running stack, said to the local stack."""

from __future__ import annotations

import re
import subprocess

import pytest

from tests.acceptance.conftest import REPO, Stack
from tests.docs.blocks import Block, blocks

pytestmark = pytest.mark.acceptance
ELSEWHERE = {
    "make local": "the stack fixture is `srvmod local up`, which is all that the target runs",
    "make test": "this is it",
    ".venv/bin/srvmod local down": "test_zz_crashes.py",
    "pulumi stack select prod && pulumi preview": "test_previews.py, on simulated AWS",
}
"""Commands of README.md that other tests run."""


def in_stack(stack: Stack, script: str) -> subprocess.CompletedProcess[str]:
    """A block as its reader would run it: in the repository, after `eval "$(srvmod local env)"`."""
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", script], cwd=REPO, env=stack.env(), capture_output=True, text=True,
        timeout=300, stdin=subprocess.DEVNULL, check=False)  # fmt: skip


def readme_lines() -> list[str]:
    """Commands of README.md, one a line."""
    return [
        line
        for block in blocks()
        if block.file == REPO / "README.md" and block.tag != "run"
        for line in block.text.strip().splitlines()
    ]


def test_every_command_of_the_readme_is_run_somewhere() -> None:
    assert set(ELSEWHERE) <= set(readme_lines())


@pytest.mark.parametrize("command", [line for line in readme_lines() if line not in ELSEWHERE])
def test_commands_of_the_readme(stack: Stack, command: str) -> None:
    done = in_stack(stack, command)
    if command.endswith("local status"):
        assert done.returncode in {0, 1}, done.stderr  # 1: something isn't healthy yet
    else:
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("block", blocks(tag="stack"), ids=lambda block: block.name)
def test_first_looks_of_the_runbooks(stack: Stack, block: Block) -> None:
    done = in_stack(stack, block.text)
    assert done.returncode == 0, f"{block.name}\n{done.stdout}\n{done.stderr}"


def test_labels_and_names_in_the_runbooks_are_the_clusters(stack: Stack) -> None:
    """A selector that finds nothing prints nothing and fails nothing: each has to find something."""
    text = "\n".join(block.text for block in blocks(tag="stack"))
    for selector in sorted(set(re.findall(r"-n serving [a-z]+ pods -l (\S+)", text))):
        assert stack.kubectl("-n", "serving", "get", "pods", "-l", selector, "-o", "name").strip(), selector
    assert stack.kubectl("get", "nodes", "-l", "srvmod.dev/pool=p5-tp4", "-o", "name").strip()
