"""The workflows in .github: rights, time limits, pinned actions, and commands that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from srvmod.tools import ensure
from tests.docs.commands import ROOT, problem, simple_commands

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED = re.compile(r"^[\w.-]+/[\w./-]+@[0-9a-f]{40}$")
BY_VERSION = frozenset({"github/codeql-action/upload-sarif@v4", "pulumi/actions@v6"})
"""Actions whose commit couldn't be confirmed; each says so beside its line."""
MAY_WRITE = {("pr.yml", "clauses", "security-events"), ("deploy.yml", "plan", "id-token"),
             ("deploy.yml", "up", "id-token"), ("drift.yml", "drift", "id-token")}  # fmt: skip
"""Every right to write, by file, job and right."""


def load(file: Path) -> dict[Any, Any]:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def jobs() -> list[Any]:
    return [
        pytest.param(file, name, job, id=f"{file.stem}-{name}")
        for file in WORKFLOWS
        for name, job in load(file)["jobs"].items()
    ]


def test_there_are_three() -> None:
    assert [file.name for file in WORKFLOWS] == ["deploy.yml", "drift.yml", "pr.yml"]


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_rights_are_given_by_name_and_least(file: Path) -> None:
    document = load(file)
    assert document["permissions"] == {"contents": "read"}
    writes = {
        (file.name, name, right)
        for name, job in document["jobs"].items()
        for right, level in job.get("permissions", {}).items()
        if level == "write"
    }
    assert writes == {right for right in MAY_WRITE if right[0] == file.name}
    assert "pull_request_target" not in document[True]


@pytest.mark.parametrize(("file", "name", "job"), jobs())
def test_every_job_ends_and_uses_known_code(file: Path, name: str, job: dict[str, Any]) -> None:
    assert 0 < job["timeout-minutes"] <= 120
    text = file.read_text(encoding="utf-8")
    for step in job["steps"]:
        action = step.get("uses")
        if action is not None:
            assert PINNED.match(action) or action in BY_VERSION, action
            if PINNED.match(action):
                assert re.search(re.escape(action) + r" # v\d+\.\d+\.\d+", text), f"{action}: no version beside it"
        if action and action.startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_runs_of_one_environment_never_overlap(file: Path) -> None:
    document = load(file)
    groups = [document.get("concurrency")] if "concurrency" in document else []
    groups += [job["concurrency"] for job in document["jobs"].values() if "concurrency" in job]
    assert groups
    for group in groups:
        assert "${{" in group["group"]
        assert group["cancel-in-progress"] == (file.name == "pr.yml")


@pytest.mark.parametrize(("file", "name", "job"), jobs())
def test_every_command_exists_and_takes_no_input_as_code(file: Path, name: str, job: dict[str, Any]) -> None:
    for step in job["steps"]:
        script = step.get("run", "")
        assert "${{" not in script, f"{file.name}, {name}: pass it by env"
        wrong = [told for words in simple_commands(script) if (told := problem(words))]
        assert not wrong, f"{file.name}, {name}: {wrong}"


def test_pull_requests_have_no_credentials() -> None:
    text = (ROOT / ".github/workflows/pr.yml").read_text(encoding="utf-8")
    assert "id-token" not in text
    assert "secrets." not in text
    assert "configure-aws-credentials" not in text


def test_prod_is_applied_only_from_an_environment_and_a_saved_plan() -> None:
    job = load(ROOT / ".github/workflows/deploy.yml")["jobs"]["up"]
    assert "inputs.environment" in job["environment"]
    assert job["needs"] == "plan"
    up = [step["run"] for step in job["steps"] if "pulumi up" in step.get("run", "")]
    assert len(up) == 1
    assert "--plan plan.json" in up[0]


def test_the_engine_is_the_one_that_is_tested() -> None:
    go_mod = (ROOT / "tools/modules/pulumi/go.mod").read_text(encoding="utf-8")
    pinned = re.search(r"github.com/pulumi/pulumi/pkg/v3 v([\d.]+)", go_mod)
    assert pinned
    for file in WORKFLOWS:
        for version in re.findall(r"pulumi-version: (\S+)", file.read_text(encoding="utf-8")):
            assert version == pinned[1], file.name


@pytest.mark.acceptance
def test_actionlint_finds_nothing() -> None:
    actionlint = ensure(["actionlint"])["actionlint"]
    done = subprocess.run([actionlint, *map(str, WORKFLOWS)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
