"""A listening simulated AWS: journal replayed, socket bound, one thread per connection."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import BaseWSGIServer, make_server

from srvmod.local.aws import instance_types, managed_policies
from srvmod.local.aws.front import Front
from srvmod.local.aws.journal import Journal, JournalError
from srvmod.local.aws.world import DEFAULT_ACCOUNT, Endpoint, World


class ServeError(Exception):
    """The simulated AWS can't start: why, and what to do."""


class QuietHandler(MotoRequestHandler):
    """moto's handler without a log line per request, over connections that stay open."""

    protocol_version = "HTTP/1.1"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Requests are counted in the front; unknown ones are logged there."""


@dataclass(frozen=True)
class Server:
    """A server that is listening; `run` answers until `stop`."""

    front: Front
    wsgi: BaseWSGIServer
    host: str

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.wsgi.server_port}"

    def run(self) -> None:
        self.wsgi.serve_forever(poll_interval=0.1)

    def start(self) -> Server:
        """Answer from a thread (for tests in one process)."""
        threading.Thread(target=self.run, daemon=True).start()
        return self

    def stop(self) -> None:
        self.wsgi.shutdown()
        self.wsgi.server_close()


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    descriptor: int | None = None,
    state: Path | None = None,
    account: str = DEFAULT_ACCOUNT,
    endpoint: tuple[str, str] | None = None,
    access_key: str | None = None,
) -> Server:
    """Bind, then replay ``state``. ``endpoint`` is the URL and base64 CA of the API server behind clusters.

    Raises ServeError (journal) and OSError (socket, files).
    """
    # The account is fixed: otherwise moto looks through the users of every partition for each request's access key.
    os.environ.update(
        MOTO_ACCOUNT_ID=account, MOTO_EC2_LOAD_DEFAULT_AMIS="false", MOTO_IAM_LOAD_MANAGED_POLICIES="true"
    )
    instance_types.trim()
    managed_policies.trim()
    front = Front(
        World(account=account, endpoint=Endpoint(*endpoint) if endpoint else None),
        Journal(state) if state else None,
        access_key,
    )
    wsgi = make_server(host, port, front, threaded=True, request_handler=QuietHandler, fd=descriptor)
    wsgi.daemon_threads = True  # type: ignore[attr-defined]  # ThreadedWSGIServer; a long poll must not hold up the end
    try:
        front.replay()
    except JournalError as error:
        wsgi.server_close()
        raise ServeError(str(error)) from error
    return Server(front, wsgi, host)
