"""From nothing to a streamed completion, and what a second `up` does."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

import pytest

from tests.acceptance.conftest import Stack


def test_one_command_streams_a_completion(stack: Stack) -> None:
    completion = stack.first_up["completion"]
    assert completion["tokens"] == 24
    assert completion["ttftMs"] > 0


def test_status_has_the_names_that_other_tools_rely_on(stack: Stack) -> None:
    status = stack.status()
    assert status["running"] is True
    assert status["engineKind"] == "simulated"
    assert Path(status["kubeconfig"]).is_file()
    assert Path(status["apiKeyFile"]).stat().st_mode & 0o077 == 0
    nodes = [n for n in status["nodes"] if not n["pretended"]]
    assert nodes
    assert all(n["instanceType"] == "p5.48xlarge" and n["ready"] and n["weightsReady"] for n in nodes)
    assert all(c["healthy"] and c["pid"] for c in status["components"]), status["components"]


def test_the_endpoint_refuses_without_a_key_and_streams_with_one(stack: Stack) -> None:
    status = stack.status()
    url = f"{status['endpoint']}/v1/chat/completions"
    body = json.dumps(
        {
            "model": "llama-3-70b-instruct",
            "stream": True,
            "max_tokens": 5,
            "messages": [{"role": "user", "content": "hi"}],
        }
    )
    request = urllib.request.Request(url, body.encode(), {"content-type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    assert refused.value.code == 401
    request.add_header("authorization", f"Bearer {Path(status['apiKeyFile']).read_text()}")
    with urllib.request.urlopen(request, timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [line for line in answer.read().decode().splitlines() if line.startswith("data: ")]
    assert events[-1] == "data: [DONE]"
    assert (
        sum("content" in json.loads(e[6:])["choices"][0]["delta"] for e in events[:-1] if json.loads(e[6:])["choices"])
        >= 5
    )


def test_a_second_up_changes_nothing(stack: Stack) -> None:
    before = {c["name"]: c["pid"] for c in stack.status()["components"]}
    stack.srvmod("local", "up")
    assert {c["name"]: c["pid"] for c in stack.status()["components"]} == before
    preview = stack.pulumi("preview", "--stack", "local", "--expect-no-changes")
    assert "unchanged" in preview.stdout


def test_plain_pulumi_commands_work(stack: Stack) -> None:
    stack.pulumi("stack", "select", "local")
    outputs = json.loads(stack.pulumi("stack", "output", "--json").stdout)
    assert outputs["contractVersion"]
    assert outputs == stack.first_up["outputs"]
