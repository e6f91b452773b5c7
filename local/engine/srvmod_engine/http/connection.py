"""One connection: parse requests, hand them to the application one after another, write the answers."""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Mapping
from typing import Final, Protocol, cast
from urllib.parse import unquote

import httptools

from srvmod_engine.http.messages import Application, Request, Response, chunk, render_head

_MAX_BODY: Final = 32 * 2**20  # bytes; a prompt of 8,192 tokens is far below
_MAX_HEADERS: Final = 256  # vLLM's --h11-max-header-count default
_INTERNAL: Final = {
    "error": {"message": "Internal server error", "type": "InternalServerError", "param": None, "code": 500}
}


class Server(Protocol):
    """What a connection needs of the server that it belongs to."""

    application: Application
    connections: "set[Connection]"
    keep_alive: float
    closing: bool

    def observe(self, request: Request, status: int, seconds: float) -> None:
        """Record a finished answer."""
        ...


class _Answer:
    """The answer to one request; see messages.Exchange and messages.Stream."""

    __slots__ = ("_begun", "_chunked", "_connection", "_done", "_gone", "_ready", "_status", "request")

    def __init__(self, connection: "Connection", request: Request) -> None:
        self.request = request
        self._connection = connection
        self._begun = time.monotonic()
        self._status = 0
        self._chunked = False
        self._done = False
        self._gone: Callable[[], None] | None = None
        self._ready: Callable[[], None] | None = None

    def on_gone(self, callback: Callable[[], None]) -> None:
        self._gone = callback

    def on_ready(self, callback: Callable[[], None]) -> None:
        self._ready = callback

    @property
    def blocked(self) -> bool:
        return self._connection.write_paused

    def respond(self, response: Response) -> None:
        if self._done or self._status:
            return
        self._status = response.status
        head = render_head(
            response.status,
            response.content_type,
            len(response.body),
            {**response.headers, **self._connection.closing_header()},
        )
        self._connection.write(head if self.request.method == "HEAD" else head + response.body)
        self._finish()

    def stream(self, content_type: str, headers: Mapping[str, str] | None = None) -> "_Answer":
        self._status = 200
        self._chunked = True
        extra = {**(headers or {}), **self._connection.closing_header()}
        self._connection.write(render_head(200, content_type, None, extra))
        return self

    def send(self, data: bytes) -> None:
        if not self._done:
            self._connection.write(chunk(data))

    @property
    def write(self) -> Callable[[bytes], bool]:
        return self._connection.write

    def end(self) -> None:
        if not self._done:
            self._connection.write(b"0\r\n\r\n")
            self._finish()

    def drop(self) -> None:
        """The client has gone."""
        if not self._done:
            self._done = True
            gone, self._gone, self._ready = self._gone, None, None
            if gone is not None:
                gone()

    def resume(self) -> None:
        """The client reads again."""
        if not self._done and self._ready is not None:
            self._ready()

    def _finish(self) -> None:
        self._done = True
        self._gone = self._ready = None  # no cycles: the collector seldom runs
        self._connection.answered(self.request, self._status, time.monotonic() - self._begun)


class Connection(asyncio.Protocol):
    """An HTTP/1.1 connection with keep-alive; pipelined requests wait for their turn."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._transport: asyncio.Transport | None = None
        self._parser = httptools.HttpRequestParser(self)
        self._client = "?"
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._current: _Answer | None = None
        self._queued: list[Request] = []
        self._keep_alive = True
        self._refused = False
        self._timer: asyncio.TimerHandle | None = None
        self._fd = -1
        self.write_paused = False

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        peer = transport.get_extra_info("peername")
        self._client = f"{peer[0]}:{peer[1]}" if peer else "?"
        self._open_descriptor()
        self._server.connections.add(self)
        self._arm_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self)
        self._disarm_timer()
        self._transport = None
        self._drop_descriptor()
        current, self._current = self._current, None
        self._queued.clear()
        if current is not None:
            current.drop()

    def data_received(self, data: bytes) -> None:
        self._disarm_timer()
        if self._fd < 0 and self._current is None and self._transport and not self._transport.get_write_buffer_size():
            self._open_descriptor()  # what was queued for it is on its way: it is as good as new
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self._refuse(400)

    def pause_writing(self) -> None:
        self.write_paused = True

    def resume_writing(self) -> None:
        self.write_paused = False
        if self._current is not None:
            self._current.resume()

    # httptools callbacks

    def on_message_begin(self) -> None:
        self._url = b""
        self._headers = []
        self._body = []
        self._size = 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))
        if len(self._headers) > _MAX_HEADERS:
            raise ValueError("too many headers")

    def on_headers_complete(self) -> None:
        if any(name.lower() == b"expect" and value.lower() == b"100-continue" for name, value in self._headers):
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        self._size += len(body)
        if self._size > _MAX_BODY:
            self._refuse(413)
            return
        self._body.append(body)

    def on_message_complete(self) -> None:
        if self._transport is None or self._refused:
            return
        self._keep_alive = self._parser.should_keep_alive()
        request = Request(
            method=self._parser.get_method().decode("ascii"),
            path=unquote(httptools.parse_url(self._url).path.decode("ascii", "replace")),
            headers={name.decode("latin-1").lower(): value.decode("latin-1") for name, value in self._headers},
            body=b"".join(self._body),
            client=self._client,
        )
        if self._current is None:
            self._handle(request)
        else:
            self._queued.append(request)
            self._transport.pause_reading()

    # used by _Answer and HttpServer

    def write(self, data: bytes) -> bool:
        """Send bytes; nothing happens when the client has gone. False when the client doesn't read fast enough.

        They go to the socket at once, past the transport: a token isn't held back until the event loop's turn ends,
        and sending it takes a third less time. A slow client gets the rest through the transport, which queues.
        """
        if self._fd >= 0:
            try:
                sent = os.write(self._fd, data)
            except OSError:
                sent = 0  # full, or broken, which the transport finds out by itself
            if sent == len(data):
                return True
            self._drop_descriptor()
            data = data[sent:]
        if self._transport is not None:
            self._transport.write(data)
        return False

    def _open_descriptor(self) -> None:
        """A descriptor of our own: the transport closes its one before it says so, and the number may be reused."""
        if self._transport is not None:
            with contextlib.suppress(OSError):  # none is left: then everything goes through the transport
                self._fd = os.dup(self._transport.get_extra_info("socket").fileno())

    def _drop_descriptor(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def closing_header(self) -> dict[str, str]:
        """`connection: close` when this answer is the connection's last."""
        return {} if self._keep_alive and not self._server.closing else {"connection": "close"}

    def answered(self, request: Request, status: int, seconds: float) -> None:
        """An answer is complete: go on with the next request, or wait for one, or close."""
        self._current = None
        self._server.observe(request, status, seconds)
        if self._transport is None:
            return
        if not self._keep_alive or self._server.closing:
            self._transport.close()
        elif self._queued:
            request = self._queued.pop(0)
            if not self._queued:
                self._transport.resume_reading()
            self._handle(request)
        else:
            self._arm_timer()

    def close_if_idle(self) -> None:
        """Close a connection on which no answer is open."""
        if self._current is None and self._transport is not None:
            self._transport.close()

    def cut(self) -> None:
        """Close at once, whatever is open."""
        if self._transport is not None:
            self._transport.abort()

    def _handle(self, request: Request) -> None:
        answer = _Answer(self, request)
        self._current = answer
        try:
            self._server.application(answer)
        except Exception:
            logging.getLogger(__name__).exception("%s %s failed", request.method, request.path)
            answer.respond(Response.json(_INTERNAL, 500))

    def _refuse(self, status: int) -> None:
        """Answer a request that isn't HTTP or is too large, and hang up."""
        if self._transport is not None and not self._refused:
            self._refused = True
            self.write(render_head(status, None, 0, {"connection": "close"}))
            self._transport.close()

    def _arm_timer(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(self._server.keep_alive, self.close_if_idle)

    def _disarm_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
