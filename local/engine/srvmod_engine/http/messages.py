"""Requests and responses as the application sees them."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, Protocol

from srvmod_engine import SIMULATION

MARK: Final = f"server: {SIMULATION}\r\nx-srvmod-simulation: {SIMULATION}\r\n"
"""Headers on every response: nobody shall take this for a real engine."""


@dataclass(frozen=True)
class Request:
    """One request with its whole body. Header names are lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    client: str


@dataclass(frozen=True)
class Response:
    """A complete answer."""

    status: int
    body: bytes = b""
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def json(cls, value: Any, status: int = 200) -> "Response":
        """A JSON answer in the compact form that vLLM's server sends."""
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return cls(status, text.encode(), "application/json")


def chunk(data: bytes) -> bytes:
    """One chunk of a body without a known length."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class Stream(Protocol):
    """The open answer of a streaming request."""

    def send(self, data: bytes) -> None:
        """Write one chunk now; ignored once the client has gone."""
        ...

    @property
    def write(self) -> Callable[[bytes], bool]:
        """Writes what `chunk` made beforehand; False once the client reads too slowly: then `blocked` counts."""
        ...

    def end(self) -> None:
        """Finish the answer."""
        ...

    @property
    def blocked(self) -> bool:
        """Whether the client reads too slowly: hold back and merge."""
        ...


class Exchange(Protocol):
    """One request's way to answer: exactly one of `respond` and `stream`, now or later."""

    request: Request

    def respond(self, response: Response) -> None:
        """Send a complete answer."""
        ...

    def stream(self, content_type: str, headers: Mapping[str, str] | None = None) -> Stream:
        """Send a head with status 200 and get the stream of chunks."""
        ...

    def on_gone(self, callback: Callable[[], None]) -> None:
        """Call back if the client disconnects before the answer has ended."""
        ...

    def on_ready(self, callback: Callable[[], None]) -> None:
        """Call back when a blocked stream may go on."""
        ...


Application = Callable[[Exchange], None]
"""Starts an answer; it must not block."""


def render_head(status: int, content_type: str | None, length: int | None, headers: Mapping[str, str]) -> bytes:
    """Status line and headers; without a length the body is chunked."""
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n", MARK]
    if content_type is not None:
        lines.append(f"content-type: {content_type}\r\n")
    if length is None:
        lines.append("transfer-encoding: chunked\r\n")
    else:
        lines.append(f"content-length: {length}\r\n")
    lines += [f"{name}: {value}\r\n" for name, value in headers.items()]
    lines.append("\r\n")
    return "".join(lines).encode("latin-1")
