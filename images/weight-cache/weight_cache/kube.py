"""The few calls to the Kubernetes API that the agent makes, over plain HTTPS."""

import base64
import http.client
import json
import os
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from weight_cache.errors import NodeError

_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TIMEOUT: Final = 10.0  # seconds per request


@dataclass(frozen=True)
class Answer:
    """Status and JSON body of an API answer."""

    status: int
    body: Any

    @property
    def message(self) -> str:
        """What the API server says went wrong."""
        return str(self.body.get("message", "")) if isinstance(self.body, dict) else ""


class Api(Protocol):
    """A way to the API server."""

    def call(self, method: str, path: str, body: Any = None, content_type: str | None = None) -> Answer:
        """One request. Raises NodeError when there is no answer."""
        ...


@dataclass(frozen=True)
class Target:
    """Where the API server is and how to prove who we are. Files are read again for every connection."""

    server: str
    ca_file: str | None = None
    token_file: str | None = None
    token: str | None = None
    certificate: tuple[str, str] | None = None


class HttpsApi:
    """Api over HTTPS (or HTTP, for tests)."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._url = urlsplit(target.server)
        if self._url.scheme not in {"https", "http"} or not self._url.hostname:
            raise NodeError(f"API server {target.server!r}: expected https://host:port")

    def call(self, method: str, path: str, body: Any = None, content_type: str | None = None) -> Answer:
        """See Api."""
        headers = {"Accept": "application/json", "User-Agent": "srvmod-weight-cache"}
        if content_type is not None:
            headers["Content-Type"] = content_type
        payload = None if body is None else json.dumps(body).encode()
        try:
            if token := self._token():
                headers["Authorization"] = f"Bearer {token}"
            connection = self._connect()
            try:
                connection.request(method, self._url.path.rstrip("/") + path, payload, headers)
                answer = connection.getresponse()
                raw = answer.read()
            finally:
                connection.close()
        except (OSError, http.client.HTTPException) as error:
            raise NodeError(f"{self._target.server}: {type(error).__name__}: {error}") from None
        try:
            return Answer(answer.status, json.loads(raw))
        except ValueError:
            return Answer(answer.status, {"message": raw[:200].decode("utf-8", "replace")})

    def _token(self) -> str | None:
        # Projected tokens are renewed on disk, so a copy kept in memory would expire.
        if self._target.token_file is not None:
            return Path(self._target.token_file).read_text(encoding="utf-8").strip()
        return self._target.token

    def _connect(self) -> http.client.HTTPConnection:
        host = str(self._url.hostname)
        if self._url.scheme == "http":
            return http.client.HTTPConnection(host, self._url.port, timeout=_TIMEOUT)
        context = ssl.create_default_context(cafile=self._target.ca_file)
        if self._target.certificate is not None:
            context.load_cert_chain(*self._target.certificate)
        return http.client.HTTPSConnection(host, self._url.port, timeout=_TIMEOUT, context=context)


def in_cluster(env: Mapping[str, str], account: Path = _ACCOUNT) -> Target:
    """The pod's own service account. Raises NodeError outside a pod."""
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (account / "token").exists():
        raise NodeError(
            "not in a pod (no KUBERNETES_SERVICE_HOST or no service account token): give --kubeconfig, "
            "or --no-taint to leave nodes alone"
        )
    address = f"[{host}]" if ":" in host else host
    return Target(f"https://{address}:{port}", ca_file=str(account / "ca.crt"), token_file=str(account / "token"))


def from_kubeconfig(path: Path) -> Target:
    """The current context of a kubeconfig: server, CA, and a token or a client certificate. Raises NodeError."""
    import yaml

    try:
        config = yaml.safe_load(path.read_text(encoding="utf-8"))
        context = _named(config, "contexts", config["current-context"])["context"]
        cluster = _named(config, "clusters", context["cluster"])["cluster"]
        user = _named(config, "users", context["user"])["user"]
        server = str(cluster["server"])
    except (OSError, yaml.YAMLError, KeyError, TypeError) as error:
        raise NodeError(f"{path}: not a usable kubeconfig: {error!r}") from None
    if cluster.get("insecure-skip-tls-verify"):
        raise NodeError(f"{path}: insecure-skip-tls-verify isn't supported; name the CA")
    if "exec" in user or "auth-provider" in user:
        raise NodeError(f"{path}: exec and auth-provider users aren't supported; use a token or a client certificate")
    ca = _file(cluster, "certificate-authority", path)
    certificate = _file(user, "client-certificate", path)
    key = _file(user, "client-key", path)
    return Target(
        server,
        ca_file=ca,
        token_file=user.get("tokenFile"),
        token=user.get("token"),
        certificate=(certificate, key) if certificate and key else None,
    )


def _named(config: Any, kind: str, name: str) -> Any:
    for entry in config[kind]:
        if entry["name"] == name:
            return entry
    raise KeyError(f"{kind}: no {name!r}")


def _file(entry: Any, name: str, kubeconfig: Path) -> str | None:
    """A file named in the kubeconfig, or its inlined content as a private temporary file."""
    if (inlined := entry.get(f"{name}-data")) is not None:
        descriptor, path = tempfile.mkstemp(prefix="weight-cache-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(base64.b64decode(inlined))
        return path
    named = entry.get(name)
    return str((kubeconfig.parent / named).resolve()) if named else None
