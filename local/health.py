"""How the health of a component is asked."""

from __future__ import annotations

import http.client
import json
import ssl
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

    def check() -> str:
        return _get(url, ca, cert, timeout_seconds)[0]

    return check


def aws_health(url: str, timeout_seconds: float = 2.0) -> HealthCheck:
    """Health of the simulated AWS at `url`. Raises FinalProblem when it lost the state of an earlier run."""

    def check() -> str:
        problem, body = _get(f"{url}/_srvmod/health", None, None, timeout_seconds)
        if problem:
            return problem
        lost = json.loads(body)["stateLost"]
        if lost:
            raise FinalProblem(
                f"the account's objects are lost: {lost}; or start anew: `srvmod local down`, then `srvmod local up`"
            )
        return ""

    return check


def _get(url: str, ca: Path | None, cert: tuple[Path, Path] | None, timeout_seconds: float) -> tuple[str, bytes]:
    """(problem or "", body)."""
    try:
        context = None
        if url.startswith("https"):
            context = ssl.create_default_context(cafile=str(ca) if ca else None)
            if ca is None:
                context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            if cert:
                context.load_cert_chain(*map(str, cert))
        with urllib.request.urlopen(url, timeout=timeout_seconds, context=context) as answer:
            return "", answer.read()
    except urllib.error.HTTPError as error:
        said = error.read(200).decode(errors="replace").strip().replace("\n", " ")
        return f"GET {url}: status {error.code}{': ' + said if said else ''}", b""
    except (OSError, http.client.HTTPException) as error:
        return f"GET {url}: {getattr(error, 'reason', '') or error or type(error).__name__}", b""
