"""The few calls to the API server that the launcher makes. Plain HTTP: it starts in milliseconds and stays small."""

from __future__ import annotations

import http.client
import json
import ssl
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

TIMEOUT_SECONDS = 10.0
WATCH_SECONDS = 240


class ApiError(Exception):
    """The API server refused a call or can't be reached; `status` is its HTTP status, 0 without an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """A client made from a kubeconfig that names certificate files, as `kube.write_kubeconfig` writes it."""

    def __init__(self, kubeconfig: Path) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server: str = cluster["server"]
        url = urllib.parse.urlsplit(self.server)
        self._host, self._port = url.hostname or "", url.port or 443
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._tls.load_cert_chain(user["client-certificate"], user["client-key"])

    def get(self, path: str) -> Any:
        """GET of `path` (as "/api/v1/nodes"). Raises ApiError."""
        return self._call("GET", path)

    def get_or_none(self, path: str) -> Any | None:
        """As `get`, but None when there is no such object (or no such kind yet)."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def patch(self, path: str, change: Mapping[str, Any]) -> Any:
        """Merges `change` into the object. Raises ApiError."""
        return self._call("PATCH", path, change, "application/merge-patch+json")

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call("POST", path, body, "application/json")

    def watch(self, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yields ("ADDED" | "MODIFIED" | "DELETED", object), first all that exist, then changes as they come.

        After the existing objects comes ("SYNCED", {}). Ends without error when the server ends the watch. Raises
        ApiError when it can't be reached or the watch breaks; then watch again from the start.
        """
        existing = self.get(path)
        for item in existing["items"]:
            yield "ADDED", item
        yield "SYNCED", {}
        query = urllib.parse.urlencode(
            {
                "watch": "true",
                "resourceVersion": existing["metadata"]["resourceVersion"],
                "timeoutSeconds": WATCH_SECONDS,
                "allowWatchBookmarks": "true",
            }
        )
        connection = self._connect(WATCH_SECONDS + TIMEOUT_SECONDS)
        try:
            joint = "&" if "?" in path else "?"
            response = self._send(connection, "GET", f"{path}{joint}{query}", None, "application/json")
            while line := response.readline():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise ApiError(event["object"].get("code", 0), f"watch {path}: {event['object'].get('message')}")
                if event["type"] != "BOOKMARK":
                    yield event["type"], event["object"]
        except (OSError, http.client.HTTPException, json.JSONDecodeError) as error:
            raise ApiError(0, f"watch {path}: {error}") from error
        finally:
            connection.close()

    def _connect(self, timeout: float) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self._host, self._port, context=self._tls, timeout=timeout)

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = "") -> Any:
        connection = self._connect(TIMEOUT_SECONDS)
        try:
            return json.loads(self._send(connection, method, path, body, kind).read())
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, f"{method} {self.server}{path}: {error}") from error
        finally:
            connection.close()

    def _send(
        self,
        connection: http.client.HTTPSConnection,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        kind: str,
    ) -> http.client.HTTPResponse:
        content = json.dumps(body).encode() if body is not None else None
        connection.request(method, path, content, {"Content-Type": kind} if kind else {})
        response = connection.getresponse()
        if response.status >= 300:
            text = response.read().decode(errors="replace")
            try:
                text = json.loads(text)["message"]
            except (ValueError, KeyError, TypeError):
                text = text[:200]
            raise ApiError(response.status, f"{method} {path}: {response.status} {text}")
        return response
