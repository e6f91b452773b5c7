"""examples/consumer against the local stack: the commands of its README, its contract check, and a streamed answer."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.conftest import REPO, Stack

pytestmark = pytest.mark.acceptance


def run(stack: Stack, folder: Path, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """A command in the consumer's folder, with the environment that `srvmod local env` prints."""
    done = subprocess.run(
        command, cwd=folder, env=stack.env(), capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL,
        check=False)  # fmt: skip
    assert not check or done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def consumer(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A copy of the example, deployed beside the local stack; removed afterwards."""
    folder = tmp_path_factory.mktemp("consumer") / "consumer"
    shutil.copytree(REPO / "examples/consumer", folder)
    run(stack, folder, "pulumi", "stack", "init", "local", "--non-interactive")
    run(stack, folder, "pulumi", "config", "set", "service", "organization/srvmod/local")
    run(stack, folder, "pulumi", "up", "--yes", "--skip-preview", "--non-interactive")
    yield folder
    run(stack, folder, "pulumi", "destroy", "--yes", "--skip-preview", "--non-interactive", check=False)
    run(stack, folder, "pulumi", "stack", "rm", "local", "--yes", "--non-interactive", check=False)


def client(stack: Stack, consumer: Path) -> str:
    return run(stack, consumer, "pulumi", "stack", "output", "client", "--json").stdout


def call(stack: Stack, consumer: Path, key: str | None, settings: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in stack.env().items() if name != "INFERENCE_API_KEY"}
    if key is not None:
        env["INFERENCE_API_KEY"] = key
    address = stack.status()["endpoint"]
    command = [sys.executable, "call.py", "--address", address, "--max-tokens", "8", "What is a bond?"]
    return subprocess.run(
        command, cwd=consumer, env=env, input=settings, capture_output=True, text=True, timeout=120, check=False
    )


def test_it_reads_what_the_service_exports(stack: Stack, consumer: Path) -> None:
    found = json.loads(client(stack, consumer))
    outputs = json.loads(stack.pulumi("stack", "output", "--json", "--stack", "local").stdout)
    assert found["model"] == outputs["model"]["servedName"]
    assert found["maxTokens"] == outputs["limits"]["maxModelTokens"]
    assert found["keyIn"] == outputs["auth"]["keysIn"]
    assert found["baseUrl"] == "http://GATEWAY:80/v1", "a stack without a host name answers to any"
    assert found["simulated"] is True


def test_it_streams_an_answer_with_its_key_only(stack: Stack, consumer: Path) -> None:
    settings, key = client(stack, consumer), Path(stack.status()["apiKeyFile"]).read_text()
    answered = call(stack, consumer, key, settings)
    assert answered.returncode == 0, answered.stderr
    assert answered.stdout.strip()
    assert "ms to the first token" in answered.stderr
    assert "simulated" in answered.stderr
    refused = call(stack, consumer, "wrong-key-0123456789", settings)
    assert refused.returncode == 1
    assert "401" in refused.stderr
    without = call(stack, consumer, None, settings)
    assert without.returncode == 1
    assert json.loads(settings)["keyIn"] in without.stderr


def test_it_refuses_another_contract(stack: Stack, consumer: Path, tmp_path: Path) -> None:
    other = tmp_path / "consumer"
    shutil.copytree(consumer, other)
    program = other / "__main__.py"
    program.write_text(program.read_text().replace("CONTRACT_VERSION = 1\n", "CONTRACT_VERSION = 2\n", 1))
    refused = run(stack, other, "pulumi", "preview", "--stack", "local", "--non-interactive", check=False)
    assert refused.returncode != 0
    assert "contractVersion = 1" in (refused.stdout + refused.stderr).replace("1.0", "1")
    assert "allowed: 2" in refused.stdout + refused.stderr
