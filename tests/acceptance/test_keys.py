"""A client's key from its secret to Envoy, and its end: what is taken away is gone from the cluster and refused."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from srvmod.infra.labels import SERVING
from srvmod.infra.serving.documents.route import API_KEYS
from srvmod.local import facts, seed
from srvmod.local.paths import State
from tests.acceptance.conftest import Stack, eventually

pytestmark = pytest.mark.acceptance
SECOND, KEY = "second", "sk-second-0123456789abcdefghij"


@pytest.fixture
def secret(stack: Stack) -> Iterator[Callable[[dict[str, str]], None]]:
    """Changes the account's secret; afterwards secret and stack are as before."""
    found = facts.load(State(stack.state).facts_file)
    assert found
    manager = seed.client("secretsmanager", found)
    before = manager.get_secret_value(SecretId=seed.API_KEYS_SECRET)["SecretString"]

    def change(more: dict[str, str]) -> None:
        text = json.dumps({**json.loads(before), **more})
        manager.put_secret_value(SecretId=seed.API_KEYS_SECRET, SecretString=text)

    yield change
    change({})
    stack.pulumi("up", "--yes", "--skip-preview", "--stack", "local")


def status_with(stack: Stack, key: str) -> int:
    url = f"{stack.status()['endpoint']}/v1/models"
    request = urllib.request.Request(url, headers={"authorization": f"Bearer {key}"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_a_removed_client_has_no_key(stack: Stack, secret: Callable[[dict[str, str]], None], tmp_path: Path) -> None:
    def clients() -> set[str]:
        return set(stack.get("-n", SERVING, "secret", API_KEYS)["data"])

    def with_second(config: dict[str, Any]) -> None:
        gateway = config.setdefault("srvmod:gateway", {})
        gateway["apiClients"] = [*gateway.get("apiClients", ["local"]), SECOND]

    own = Path(stack.status()["apiKeyFile"]).read_text()
    assert clients() == {"local"}
    secret({SECOND: KEY})
    file = stack.config_file(tmp_path, with_second)
    stack.pulumi("up", "--yes", "--skip-preview", "--stack", "local", "--config-file", str(file))
    assert clients() == {"local", SECOND}
    eventually("the second client's key is taken", 60, lambda: status_with(stack, KEY) == 200)

    secret({})
    stack.pulumi("up", "--yes", "--skip-preview", "--stack", "local")
    assert clients() == {"local"}
    eventually("the second client's key is refused", 60, lambda: status_with(stack, KEY) == 401)
    assert status_with(stack, own) == 200
