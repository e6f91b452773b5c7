"""How the health of a component is asked, and how a component of ours answers."""

from __future__ import annotations

import functools
import http.client
import http.server
import json
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

HealthCheck = Callable[[], str]
"""Returns "" when healthy, else one line that says what was asked and what came back."""


class FinalProblem(Exception):  # noqa: N818  # not raised for a fault of the check, but as the answer to its question
    """An answer that waiting doesn't change; its text says what to do."""


def http_health(
    url: str,
    *,
    ca: Path | None = None,
    cert: tuple[Path, Path] | None = None,
    timeout_seconds: float = 2.0,
) -> HealthCheck:
    """Health by an HTTP GET: healthy when the status is 200."""
    # Made once: reading certificates for every question cost more than all the answers.
    context = functools.cache(lambda: _tls(ca, cert) if url.startswith("https") else None)

    def check() -> str:
        try:
            return _get(url, context(), timeout_seconds)[0]
        except OSError as error:
            return f"GET {url}: {error}"

    return check


def aws_health(url: str, timeout_seconds: float = 2.0) -> HealthCheck:
    """Health of the simulated AWS at `url`. Raises FinalProblem when it lost the state of an earlier run."""

    def check() -> str:
        problem, body = _get(f"{url}/_srvmod/health", None, timeout_seconds)
        if problem:
            return problem
        lost = json.loads(body)["stateLost"]
        if lost:
            raise FinalProblem(
                f"the account's objects are lost: {lost}; or start anew: `srvmod local down`, then `srvmod local up`"
            )
        return ""

    return check


def _tls(ca: Path | None, cert: tuple[Path, Path] | None) -> ssl.SSLContext:
    """Trusts `ca` alone; without one anybody, for components that make a certificate of their own at start."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca:
        context.load_verify_locations(ca)
    else:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if cert:
        context.load_cert_chain(*map(str, cert))
    return context


def _get(url: str, context: ssl.SSLContext | None, timeout_seconds: float) -> tuple[str, bytes]:
    """(problem or "", body)."""
    try:
        with urllib.request.urlopen(url, timeout=timeout_seconds, context=context) as answer:
            return "", answer.read()
    except urllib.error.HTTPError as error:
        said = error.read(200).decode(errors="replace").strip().replace("\n", " ")
        return f"GET {url}: status {error.code}{': ' + said if said else ''}", b""
    except (OSError, http.client.HTTPException) as error:
        return f"GET {url}: {getattr(error, 'reason', '') or error or type(error).__name__}", b""


def answer_health(address: tuple[str, int], problem: Callable[[], str]) -> None:
    """Answers every GET at `address` from a thread: 200 when `problem()` is empty, else 503 with its words."""

    class Health(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = problem()
            content = (found or "ok").encode()
            self.send_response(503 if found else 200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Health questions aren't news."""

    server = http.server.ThreadingHTTPServer(address, Health)
    threading.Thread(target=server.serve_forever, name="health", daemon=True).start()
