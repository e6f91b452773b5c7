"""Mistakes that AWS or the cluster would punish: named in the message, and `pulumi up` goes on from there."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.conftest import REPO, Stack

PROGRAM = """\
from srvmod.infra.platform.documents import pool as documents

right = documents.node_class


def wrong(pool):
    node_class = right(pool)
    spec = node_class["spec"]
    {change}
    return node_class


documents.node_class = wrong
from srvmod.infra.program import program

program()
"""

WRONG = {
    "one discovery tag removed": (
        'spec["subnetSelectorTerms"] = [{"tags": {"karpenter.sh/discovery": "nobody-has-this"}}]',
        ["SubnetsReady", "Subnet"],
    ),
    "wrong role name": ('spec["role"] = "no-such-role"', ["no-such-role"]),
    "a node class that the API rejects": ('spec["instanceStorePolicy"] = "RAID9"', ["instanceStorePolicy", "RAID9"]),
}


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a project whose program is the real one with one change; it shares the stack's state."""

    def make(change: str) -> Path:
        folder = tmp_path / "project"
        (folder / "infra").mkdir(parents=True)
        (folder / "infra/__main__.py").write_text(PROGRAM.format(change=change))
        for name in ("Pulumi.yaml", "Pulumi.local.yaml"):
            shutil.copy(REPO / name, folder / name)
        return folder

    return make


@pytest.mark.parametrize("case", sorted(WRONG))
def test_the_message_names_it_and_the_state_goes_on(stack: Stack, project: Callable[[str], Path], case: str) -> None:
    change, named = WRONG[case]
    command = ["pulumi", "up", "--yes", "--skip-preview", "--stack", "local", "--non-interactive", "--color", "never"]
    failed = subprocess.run(
        command, cwd=project(change), env=stack.env(), capture_output=True, text=True, timeout=400,
        stdin=subprocess.DEVNULL, check=False)  # fmt: skip
    try:
        output = failed.stdout + failed.stderr
        assert failed.returncode != 0, output
        assert all(word in output for word in named), output
    finally:
        stack.pulumi("up", "--yes", "--skip-preview", "--stack", "local")
    condition = next(c for c in stack.get("ec2nodeclass", "p5-tp4")["status"]["conditions"] if c["type"] == "Ready")
    assert condition["status"] == "True", json.dumps(condition)
