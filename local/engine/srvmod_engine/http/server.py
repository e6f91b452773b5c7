"""The listening server: it owns the connections, and counts what goes on."""

import asyncio
import logging
import time
from collections.abc import Callable

from srvmod_engine.http.connection import Connection
from srvmod_engine.http.messages import Application, Request

_access = logging.getLogger("srvmod_engine.access")

Observer = Callable[[Request, int, float], None]
"""Told of each finished answer: request, status, seconds."""


class HttpServer:
    """Listens, and counts what goes on. `keep_alive` is the idle time of a connection, seconds."""

    def __init__(
        self,
        application: Application,
        *,
        keep_alive: float,
        observer: Observer,
        access_log: bool = True,
        quiet_paths: frozenset[str] = frozenset(),
    ) -> None:
        self.application = application
        self.keep_alive = keep_alive
        self.connections: set[Connection] = set()
        self.closing = False
        self._observer = observer
        self._access_log = access_log
        self._quiet = quiet_paths
        self._server: asyncio.Server | None = None

    async def listen(self, host: str, port: int) -> int:
        """Open the port; the number that was bound. Raises OSError when it is taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Connection(self), host, port, backlog=2048)
        return int(self._server.sockets[0].getsockname()[1])

    def observe(self, request: Request, status: int, seconds: float) -> None:
        """Record a finished answer."""
        if self._access_log and request.path not in self._quiet:
            _access.info('%s - "%s %s HTTP/1.1" %d', request.client, request.method, request.path, status)
        self._observer(request, status, seconds)

    async def close(self, grace: float = 2.0) -> None:
        """Stop listening, let open answers end for `grace` seconds, then cut them."""
        self.closing = True
        if self._server is not None:
            self._server.close()
        for connection in list(self.connections):
            connection.close_if_idle()
        end = time.monotonic() + grace
        while self.connections and time.monotonic() < end:
            await asyncio.sleep(0.02)
        for connection in list(self.connections):
            connection.cut()
