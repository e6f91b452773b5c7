"""Streams one chat completion through the endpoint, as any client would, and times its tokens."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any

from srvmod.local import facts, seed
from srvmod.local.errors import LocalError
from srvmod.local.paths import State

MAX_TOKENS = 24


def stream(
    found: facts.Facts, state: State, *, model: str = "llama-3-70b-instruct", patience_seconds: float = 30
) -> dict[str, Any]:
    """Returns {text, tokens, ttftMs, meanItlMs}. Writes the API key file for the user on the way.

    Retries while the gateway isn't programmed yet (connection refused, 404, 503), never after a first byte.
    """
    key = seed.api_key(found)
    state.api_key_file.touch(mode=0o600)
    state.api_key_file.write_text(key)
    deadline, last = time.monotonic() + patience_seconds, ""
    while time.monotonic() < deadline:
        try:
            completion = _once(found, key, model)
            _refuses_strangers(found)
            return completion
        except (OSError, http.client.HTTPException, _NotYetError) as error:
            last = f"{type(error).__name__}: {error}"
            time.sleep(0.3)
    raise LocalError(
        f"no completion from {found.endpoint} within {patience_seconds:.0f} s; last answer: {last}",
        "`srvmod local status` shows what isn't ready",
    )


def _refuses_strangers(found: facts.Facts) -> None:
    """Raises LocalError when the endpoint answers a request without a key with anything but 401."""
    connection = http.client.HTTPConnection("127.0.0.1", found.endpoint_port, timeout=30)
    try:
        connection.request("GET", "/v1/models")
        status = connection.getresponse().status
    finally:
        connection.close()
    if status != 401:
        raise LocalError(
            f"{found.endpoint}/v1/models: status {status} without an API key; expected: 401",
            "the gateway doesn't enforce SecurityPolicy serving/engine: see its status, and Envoy Gateway's log",
        )


class _NotYetError(Exception):
    pass


def _once(found: facts.Facts, key: str, model: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", found.endpoint_port, timeout=30)
    body = json.dumps(
        {
            "model": model,
            "stream": True,
            "max_tokens": MAX_TOKENS,
            "messages": [{"role": "user", "content": "Say hello."}],
        }
    )
    began = time.monotonic()
    try:
        connection.request(
            "POST", "/v1/chat/completions", body, {"authorization": f"Bearer {key}", "content-type": "application/json"}
        )
        answer = connection.getresponse()
        if answer.status in (401, 404, 503):
            raise _NotYetError(f"status {answer.status}: {answer.read(200)!r}")
        if answer.status != 200:
            raise LocalError(
                f"{found.endpoint}/v1/chat/completions: status {answer.status}: {answer.read(400)!r}",
                "see `srvmod local status`",
            )
        times, text = [], []
        for line in answer:
            if not line.startswith(b"data: ") or line.strip() == b"data: [DONE]":
                continue
            choices = json.loads(line[6:])["choices"]
            if choices and choices[0]["delta"].get("content"):
                times.append(time.monotonic())
                text.append(choices[0]["delta"]["content"])
    finally:
        connection.close()
    if not times:
        raise LocalError(
            "the stream ended without a token", "see the engine's log: kubectl -n serving logs deploy/engine"
        )
    gaps = len(times) - 1
    return {
        "text": "".join(text),
        "tokens": len(times),
        "ttftMs": (times[0] - began) * 1e3,
        "meanItlMs": (times[-1] - times[0]) / gaps * 1e3 if gaps else 0.0,
    }
