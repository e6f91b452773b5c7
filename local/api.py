"""The local stack's one client of the API server. Plain HTTP: what uses it starts in milliseconds and stays small."""

from __future__ import annotations

import http.client
import json
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

TIMEOUT_SECONDS = 10.0
WATCH_SECONDS = 240
RETRY_SECONDS = 0.5

Object = dict[str, Any]


class ApiError(Exception):
    """The API server refused a call or can't be reached; `status` is its HTTP status, 0 without an answer."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """A client made from a kubeconfig that names certificate files, as `write_kubeconfig` writes it.

    Each thread keeps one connection between its calls. `timeout_seconds` is for each of a call's exchanges.
    """

    def __init__(self, kubeconfig: Path, timeout_seconds: float = TIMEOUT_SECONDS) -> None:
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        self.server: str = cluster["server"]
        url = urllib.parse.urlsplit(self.server)
        self._host, self._port = url.hostname or "", url.port or 443
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._tls.load_cert_chain(user["client-certificate"], user["client-key"])
        self._timeout_seconds = timeout_seconds
        self._threads = threading.local()

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
        """Creates an object. Raises ApiError (409: it is there)."""
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
        kept: http.client.HTTPSConnection | None = getattr(self._threads, "connection", None)
        connection = kept or self._connect(self._timeout_seconds)
        self._threads.connection = connection
        try:
            return json.loads(self._send(connection, method, path, body, kind).read())
        except (OSError, http.client.HTTPException, ValueError) as error:  # a ValueError: half an answer, no JSON
            connection.close()
            self._threads.connection = None
            # A kept connection may have been closed by the server meanwhile; only a POST can't be said twice.
            if kept and method != "POST":
                return self._call(method, path, body, kind)
            raise ApiError(0, f"{method} {self.server}{path}: {error}") from error

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


class Mirror:
    """Keeps the objects under one path as the API server has them, in a thread of its own.

    `objects` is replaced as a whole, so that no reader sees a half-changed mapping; keys are "namespace/name", or the
    name alone for cluster-wide kinds. `synced` says that all have been seen once, `problem` why they can't be watched
    now; what is known stays meanwhile.
    """

    def __init__(self, api: Api, path: str, changed: Callable[[], None]) -> None:
        self.api, self.path, self._changed = api, path, changed
        self.objects: Mapping[str, Object] = {}
        self.problem = "starting"
        self.synced = False

    def start(self) -> None:
        threading.Thread(target=self._follow, name=f"watch {self.path}", daemon=True).start()

    def _follow(self) -> None:
        while True:
            try:
                self._watch()
            except Exception as error:  # a thread that ends would leave a component with what it last saw, healthy
                self.problem = str(error) if isinstance(error, ApiError) else f"{type(error).__name__}: {error}"
                time.sleep(RETRY_SECONDS)

    def _watch(self) -> None:
        fresh: dict[str, Object] | None = {}
        for event, item in self.api.watch(self.path):
            if event == "SYNCED":
                self.objects, fresh, self.synced, self.problem = fresh or {}, None, True, ""
            else:
                target = dict(self.objects) if fresh is None else fresh
                target.pop(key(item), None)
                if event != "DELETED":
                    target[key(item)] = item
                if fresh is None:
                    self.objects = target
            self._changed()


def key(item: Object) -> str:
    """An object's key in a mirror."""
    meta = item["metadata"]
    return f"{meta['namespace']}/{meta['name']}" if "namespace" in meta else meta["name"]


def condition(item: Object, name: str) -> bool:
    """Whether an object's status has this condition and it is True. Both may be null in an object's first moment."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return any(c["type"] == name and c["status"] == "True" for c in conditions)
