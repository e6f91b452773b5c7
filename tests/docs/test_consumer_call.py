"""examples/consumer/call.py against a small server: streams, refuses, and names what is missing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.docs.blocks import ROOT

CLIENT = {"baseUrl": "http://GATEWAY:80/v1", "model": "m", "keyHeader": "authorization", "keyIn": "s/api-keys",
          "maxTokens": 4, "timeoutSeconds": 20, "ttftMs": 350, "itlP95Ms": 30, "simulated": True}  # fmt: skip


class Service(BaseHTTPRequestHandler):
    """Two tokens for the right key; keeps what was asked."""

    asked: list[tuple[str, dict[str, Any]]] = []  # noqa: RUF012 - one server per test

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.asked.append((self.path, body))
        right = self.headers["authorization"] == "Bearer right"
        self.send_response(200 if right else 401)
        self.end_headers()
        if right:
            for piece in ("two ", "words"):
                self.wfile.write(f"data: {json.dumps({'choices': [{'delta': {'content': piece}}]})}\n\n".encode())
            self.wfile.write(b'data: {"choices": []}\n\ndata: [DONE]\n\n')

    def log_message(self, *_: object) -> None:
        """No line per request."""


@pytest.fixture
def address() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    Service.asked.clear()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def call(address: str, key: str | None) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "INFERENCE_API_KEY"}
    if key is not None:
        env["INFERENCE_API_KEY"] = key
    command = [sys.executable, str(ROOT / "examples/consumer/call.py"), "--address", address, "hello"]
    return subprocess.run(command, env=env, input=json.dumps(CLIENT), capture_output=True, text=True, timeout=30,
                          check=False)  # fmt: skip


def test_it_streams(address: str) -> None:
    done = call(address, "right")
    assert (done.returncode, done.stdout) == (0, "two words")
    assert "simulated engine" in done.stderr
    path, body = Service.asked[0]
    assert path == "/v1/chat/completions"
    assert (body["model"], body["stream"], body["max_tokens"]) == ("m", True, CLIENT["maxTokens"])


def test_it_says_why_not(address: str) -> None:
    wrong, without, nobody = call(address, "wrong"), call(address, None), call("http://127.0.0.1:1", "right")
    assert [done.returncode for done in (wrong, without, nobody)] == [1, 1, 1]
    assert "401" in wrong.stderr
    assert "s/api-keys" in without.stderr
    assert "no answer from http://127.0.0.1:1" in nobody.stderr
