"""Every environment of the real program previews through the real engine with the simulated providers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from .processes import REPO, Cli, Simulation, environment

pytestmark = pytest.mark.acceptance


@pytest.fixture(params=["local", "dev", "staging", "prod"])
def stack(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, Cli]]:
    """The stack's name and pulumi in a copy of the project (`stack init` writes into the stack's file)."""
    name: str = request.param
    project = tmp_path / "project"
    project.mkdir()
    for file in REPO.glob("Pulumi*.yaml"):
        lines = [line for line in file.read_text().splitlines() if not line.startswith("encryptionsalt:")]
        (project / file.name).write_text("\n".join(lines) + "\n")
    (project / "infra").symlink_to(REPO / "infra")
    config = yaml.safe_load((REPO / f"Pulumi.{name}.yaml").read_text())["config"]
    simulation = Simulation(tmp_path, account=str(_find(config, "accountId")))
    secret = {client: f"sk-0123456789abcdef-{client}" for client in _find(config, "apiClients")}
    try:
        simulation.start()
        manager = boto3.client(
            "secretsmanager", region_name=_find(config, "region"), endpoint_url=f"http://127.0.0.1:{simulation.port}",
            aws_access_key_id="AKIATEST", aws_secret_access_key="secret",
        )  # fmt: skip
        manager.create_secret(Name=f"srvmod-{name}/api-keys", SecretString=json.dumps(secret))
        cli = Cli(project, environment(tmp_path, simulation))
        cli("stack", "init", name)
        yield name, cli
    finally:
        simulation.kill()


def _find(config: dict[str, Any], key: str) -> Any:
    """The value of ``key`` in any block of the stack's configuration."""
    for block in config.values():
        if isinstance(block, dict) and key in block:
            return block[key]
    raise AssertionError(f"no {key} in {sorted(config)}")


def test_it_previews_without_an_error(stack: tuple[str, Cli]) -> None:
    _, cli = stack
    shown = cli("preview")
    assert "to create" in shown
    assert "error:" not in shown
    assert "Calling __str__ on an Output" not in shown
