"""`srvmod check` as other teams have it: from pip alone, as a pre-commit hook, and by the steps of the action."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.policies.table import HERE

pytestmark = pytest.mark.acceptance
REPO = Path(__file__).parents[2]
PRE_COMMIT = "pre-commit==4.7.0"
HEAVY = ("pulumi", "boto3", "kubernetes", "moto")
TP8 = (HERE / "base.yaml").read_text().replace("--tensor-parallel-size=4", "--tensor-parallel-size=8")


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository as somebody else gets it: what git has, without what was built here."""
    folder = tmp_path_factory.mktemp("source") / "srvmod"
    done = run("git", "clone", "--quiet", "--no-hardlinks", REPO, folder, cwd=folder.parent)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def installed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment's programs, after `pip install .` without extras, as action.yml has it."""
    folder = tmp_path_factory.mktemp("environment")
    assert run(sys.executable, "-m", "venv", folder, cwd=folder).returncode == 0
    done = run(folder / "bin/pip", "install", "--quiet", "--disable-pip-version-check", source, cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder / "bin"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository of another team: one good file, one bad one."""
    folder = tmp_path / "project"
    (folder / "deploy").mkdir(parents=True)
    shutil.copy(HERE / "base.yaml", folder / "deploy/good.yaml")
    (folder / "deploy/bad.yaml").write_text(TP8)
    return folder


def test_pip_brings_no_pulumi_and_the_check_runs(installed: Path, project: Path) -> None:
    listed = json.loads(run(installed / "pip", "list", "--format", "json", cwd=project).stdout)
    names = {one["name"].lower() for one in listed}
    assert "srvmod" in names
    assert not [name for name in names if name.startswith(HEAVY)]
    good = run(installed / "srvmod", "check", "deploy/good.yaml", cwd=project)
    assert good.returncode == 0, good.stdout + good.stderr
    bad = run(installed / "srvmod", "check", "deploy", cwd=project)
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "deploy/bad.yaml:27: error: MC-HW-01: tensor_parallel_size is 8" in bad.stdout


def test_the_actions_command_annotates(installed: Path, project: Path) -> None:
    """The step of action.yml as a runner starts it: bash, with the inputs in variables."""
    action = yaml.safe_load((REPO / "action.yml").read_text())
    (step,) = [one for one in action["runs"]["steps"] if "srvmod check" in one.get("run", "")]
    inputs = {name: str(one["default"]) for name, one in action["inputs"].items()} | {"paths": "deploy"}
    variables = {
        name: inputs[value.removeprefix("${{ inputs.").removesuffix(" }}")] for name, value in step["env"].items()
    }
    path = f"{installed}:{os.environ['PATH']}"
    script = ("bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"])
    done = run(*script, cwd=project, PATH=path, **variables)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "::error file=deploy/bad.yaml,line=27,title=MC-HW-01::tensor_parallel_size is 8%0A" in done.stdout
    good = run(*script, cwd=project, PATH=path, **{**variables, "PATHS": "deploy/good.yaml"})
    assert good.returncode == 0, good.stdout + good.stderr


def test_pre_commit_runs_the_hook(installed: Path, source: Path, project: Path, tmp_path: Path) -> None:
    done = run(installed / "pip", "install", "--quiet", "--disable-pip-version-check", PRE_COMMIT, cwd=project)
    assert done.returncode == 0, done.stderr
    assert run("git", "init", "--quiet", cwd=project).returncode == 0
    assert run("git", "add", ".", cwd=project).returncode == 0
    home = {"PRE_COMMIT_HOME": str(tmp_path / "home")}
    command = (installed / "pre-commit", "try-repo", source, "srvmod-check", "--verbose", "--files")
    bad = run(*command, "deploy/bad.yaml", "deploy/good.yaml", cwd=project, **home)
    assert bad.returncode == 1, bad.stdout + bad.stderr
    assert "tensor_parallel_size is 8 [tensor-parallel]" in bad.stdout, bad.stdout + bad.stderr
    good = run(*command, "deploy/good.yaml", cwd=project, **home)
    assert good.returncode == 0, good.stdout + good.stderr
