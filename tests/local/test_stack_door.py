"""No request without a key: Envoy Gateway starts when it can see every policy, and `up` tries the door itself."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from srvmod.local import facts, first_completion
from srvmod.local.api import ApiError
from srvmod.local.envoy_gateway import GROUPS
from srvmod.local.errors import LocalError
from srvmod.local.waiting import groups_established

ROUTES, POLICIES = GROUPS


class Definitions:
    """An API server with these CRDs: (group, established)."""

    def __init__(self, *crds: tuple[str, bool | None]) -> None:
        self.crds = crds

    def get(self, _: str) -> Any:
        return {
            "items": [
                {
                    "spec": {"group": group},
                    "status": {"conditions": None if done is None else [{"type": "Established", "status": str(done)}]},
                }
                for group, done in self.crds
            ]
        }


class Away:
    def get(self, _: str) -> Any:
        raise ApiError(0, "refused")


@pytest.mark.parametrize(
    ("api", "there"),
    [
        (Definitions((ROUTES, True), (POLICIES, True), ("keda.sh", False)), True),
        (Definitions((ROUTES, True), (POLICIES, True), (POLICIES, False)), False),
        (Definitions((ROUTES, True), (POLICIES, None)), False),
        (Definitions((ROUTES, True)), False),
        (Definitions(), False),
        (Away(), False),
    ],
)
def test_every_definition_of_a_group_has_to_be_served(api: Any, there: bool) -> None:
    assert groups_established(api, GROUPS) is there


@contextmanager
def endpoint(status: int) -> Iterator[facts.Facts]:
    """A gateway that answers everybody with `status`."""

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield facts.Facts("abc", 1, 2, server.server_address[1], 3, "4")
        server.shutdown()
        thread.join()


def test_up_fails_where_nobody_asks_for_a_key() -> None:
    with endpoint(401) as found:
        first_completion._refuses_strangers(found)
    with endpoint(200) as found, pytest.raises(LocalError, match="status 200 without an API key; expected: 401"):
        first_completion._refuses_strangers(found)
