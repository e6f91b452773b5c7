"""Gate 2 with the real engine: `pulumi preview --policy-pack policies` on simulated AWS, from nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from srvmod.tools import ensure
from tests.acceptance.test_previews import ENVIRONMENTS, REPO, aws
from tests.policies.broken import BROKEN

pytestmark = pytest.mark.acceptance
__all__ = ["aws"]
SABOTAGE = """
from srvmod.infra.serving.documents import engine_flags
CHANGES = {changes!r}
whole = engine_flags.serve_arguments
def broken(flags):
    words = whole(flags)
    for before, after in CHANGES:
        assert before in words, (before, words)
        index = words.index(before)
        words[index:index + 1] = after.split()
    return words
engine_flags.serve_arguments = broken
"""
"""What somebody might do to the program: put before its own lines."""


def project(tmp_path: Path, env: str, before: str = "") -> Path:
    """The stack's project with the pack beside it, as in the repository; `before` runs before the program."""
    folder = tmp_path / "project"
    (folder / "infra").mkdir(parents=True)
    program = (REPO / "infra/__main__.py").read_text()
    head, _, tail = program.partition("from srvmod.infra.program import program")
    (folder / "infra/__main__.py").write_text(f"{head}{before}\nfrom srvmod.infra.program import program{tail}")
    shutil.copy(REPO / "Pulumi.yaml", folder)
    lines = (REPO / f"Pulumi.{env}.yaml").read_text().splitlines(keepends=True)
    # The salt of whoever made the stack's secrets belongs to another passphrase.
    kept = "".join(line for line in lines if not line.startswith("encryptionsalt"))
    (folder / f"Pulumi.{env}.yaml").write_text(kept)
    (folder / "policies").mkdir()
    for name in ("PulumiPolicy.yaml", "__main__.py"):
        shutil.copy(REPO / "policies" / name, folder / "policies")
    (tmp_path / "backend").mkdir()
    return folder


def preview(folder: Path, env: str, url: str, config: dict[str, object] | None = None) -> tuple[int, str]:
    """Exit code and output of a preview with the pack."""
    pulumi = ensure(["pulumi", "pulumi-resource-kubernetes"])["pulumi"]
    path = f"{REPO / 'local/providers/bin'}:{pulumi.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = {
        **os.environ,
        "PATH": path,
        "PULUMI_BACKEND_URL": f"file://{folder.parent / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PULUMI_HOME": str(folder.parent / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "true",
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "SRVMOD_PYTHON": sys.executable,
    }
    command = ["preview", "--stack", env, "--policy-pack", "policies"]
    if config:
        file = folder / "levels.json"
        file.write_text(json.dumps(config))
        command += ["--policy-pack-config", str(file)]
    output = ""
    for words in (["stack", "init", env], command):
        done = subprocess.run(
            [str(pulumi), *words, "--non-interactive", "--color", "never"],
            cwd=folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=400,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        output = done.stdout + done.stderr
        assert words[0] == "preview" or done.returncode == 0, output
    return done.returncode, output


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_the_program_passes(env: str, aws: str, tmp_path: Path) -> None:
    """With the pack's own configuration: every environment is all that is applied."""
    code, output = preview(project(tmp_path, env), env, aws)
    assert code == 0, output
    assert "srvmod@v0.1.0" in output, output
    assert "mandatory" not in output, output


def test_each_clause_broken_in_the_program_fails_with_its_id(aws: str, tmp_path: Path) -> None:
    """One preview per clause would take minutes: all are broken at once, and each is named."""
    changes = SABOTAGE.format(changes=list(BROKEN.values()))
    code, output = preview(project(tmp_path, "prod", changes), "prod", aws)
    assert code != 0, output
    for clause in BROKEN:
        assert f"{clause}/" in output, (clause, output)
    assert "[mandatory]" in output
    assert "deployment" in output.lower()


@pytest.fixture
def env() -> str:
    """Whose account the simulated AWS is."""
    return "prod"
