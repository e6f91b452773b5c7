"""Every environment previews through the real engine against simulated AWS, from nothing and with no cluster."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from srvmod.infra import identifiers
from srvmod.infra.settings import load_stack_file
from srvmod.tools import ensure
from tests.acceptance.deployment import account

REPO = Path(__file__).parents[2]
ENVIRONMENTS = ("local", "dev", "staging", "prod")
START_SECONDS = 90


@pytest.fixture(params=ENVIRONMENTS)
def env(request: pytest.FixtureRequest) -> str:
    """A shipped environment."""
    return request.param


@pytest.fixture
def aws(env: str, tmp_path: Path) -> Iterator[str]:
    """Simulated AWS as the environment's account, with its API keys; its URL."""
    settings = load_stack_file(REPO / f"Pulumi.{env}.yaml")
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "srvmod.local.aws", "--port", "0", "--ready-file", str(ready)]
    with (tmp_path / "aws.log").open("w") as log:
        server = subprocess.Popen([*command, "--account", settings.aws.account_id], stdout=log, stderr=log)
    try:
        url = _url(server, ready)
        client = boto3.client(
            "secretsmanager",
            region_name=settings.aws.region,
            endpoint_url=url,
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )
        keys = {client_name: f"key-of-{client_name}-0123456789" for client_name in settings.gateway.api_clients}
        client.create_secret(Name=identifiers.api_keys_secret(settings), SecretString=json.dumps(keys))
        yield url
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def _url(server: subprocess.Popen[bytes], ready: Path) -> str:
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        if ready.exists() and ready.stat().st_size:
            return str(json.loads(ready.read_text())["url"])
        assert server.poll() is None, "simulated AWS ended: see aws.log"
        time.sleep(0.2)
    raise AssertionError(f"simulated AWS isn't ready after {START_SECONDS} s")


@pytest.mark.acceptance
def test_previews_from_nothing(env: str, aws: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "infra").mkdir(parents=True)
    shutil.copy(REPO / "infra/__main__.py", project / "infra")
    for name in ("Pulumi.yaml", f"Pulumi.{env}.yaml"):
        shutil.copy(REPO / name, project)
    (tmp_path / "backend").mkdir()
    pulumi = ensure(["pulumi", "pulumi-resource-kubernetes"])["pulumi"]
    path = f"{REPO / 'local/providers/bin'}:{pulumi.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}"
    variables = {
        **os.environ,
        "PATH": path,
        "PULUMI_BACKEND_URL": f"file://{tmp_path / 'backend'}",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PULUMI_HOME": str(tmp_path / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "true",
        "AWS_ENDPOINT_URL": aws,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_EC2_METADATA_DISABLED": "true",
        "SRVMOD_PYTHON": sys.executable,
    }

    def run(*args: str) -> str:
        done = subprocess.run(
            [str(pulumi), *args, "--non-interactive", "--color", "never"],
            cwd=project,
            env=variables,
            capture_output=True,
            text=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    stack_file = (project / f"Pulumi.{env}.yaml").read_text()
    if "encryptionsalt" in stack_file:  # of another passphrase: the stack's own user made it
        (project / f"Pulumi.{env}.yaml").write_text(
            "".join(line for line in stack_file.splitlines(keepends=True) if not line.startswith("encryptionsalt"))
        )
    run("stack", "init", env)
    output = run("preview", "--stack", env)
    assert "to create" in output
    assert "error" not in output.lower().replace("errors", "")
    assert "Calling __str__ on an Output" not in output


@pytest.mark.acceptance
def test_a_preview_without_keys_names_secret_form_and_command(tmp_path: Path) -> None:
    with account("dev", tmp_path, lambda sections: None) as deployment:
        secret = identifiers.api_keys_secret(deployment.settings)
        secrets = deployment.client("secretsmanager")
        told = {}
        for value in ("{}", "not JSON", None):
            if value is None:
                secrets.delete_secret(SecretId=secret, ForceDeleteWithoutRecovery=True)
            else:
                secrets.put_secret_value(SecretId=secret, SecretString=value)
            done = deployment.pulumi("preview", "--stack", "dev", check=False)
            told[value] = done.stdout + done.stderr
            assert done.returncode != 0
            assert f"secret {secret} in account {deployment.settings.aws.account_id}, us-east-1" in told[value]
            assert "Traceback" not in told[value]
    assert "has no key for" in told["{}"]
    assert "isn't JSON" in told["not JSON"]
    assert f"aws secretsmanager create-secret --name {secret}" in told[None]
