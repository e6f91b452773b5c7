"""Tells of engines that refused to start: Events for what the island check wrote as its container's last words.

The check runs in an engine's pod, which has neither a token nor a way to the API server; the agent of its node has.
"""

import logging
import zlib
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from weight_cache.errors import PodError
from weight_cache.kube import Answer, Api

_log = logging.getLogger("weight_cache")
REASON: Final = "IslandCheckFailed"
"""First word of the check's message, and the Event's reason."""
COMPONENT: Final = "srvmod-weight-cache"
MESSAGE_BYTES: Final = 1024
"""As much as Kubernetes' own components put into an Event."""


@dataclass(frozen=True)
class Refusals:
    """Watches the engines of one node."""

    api: Api
    node: str
    namespace: str
    selector: str
    """Label selector of engine pods, such as app.kubernetes.io/name=engine."""

    def tell(self) -> int:
        """Write one Event for each container that ended in the check and wasn't told of; their number. Raises
        NodeError, PodError."""
        told = 0
        for pod in self._pods():
            for container in pod.get("status", {}).get("containerStatuses") or []:
                for state in ("state", "lastState"):
                    ended = (container.get(state) or {}).get("terminated") or {}
                    if str(ended.get("message", "")).startswith(f"{REASON}: "):
                        told += self._event(pod["metadata"], container["name"], ended)
        return told

    def _event(self, pod: dict[str, Any], container: str, ended: dict[str, Any]) -> int:
        message = ended["message"].removeprefix(f"{REASON}: ").encode()[:MESSAGE_BYTES].decode(errors="ignore")
        # The same end has the same name: the API server refuses to be told of it twice, also after a restart of ours.
        end = zlib.crc32(f"{pod['uid']} {container} {ended.get('finishedAt')}".encode())
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{pod['name']}.{end:08x}", "namespace": self.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod["name"],
                "namespace": self.namespace,
                "uid": pod["uid"],
                "fieldPath": f"spec.containers{{{container}}}",
            },
            "type": "Warning",
            "reason": REASON,
            "message": message,
            "count": 1,
            "firstTimestamp": ended.get("finishedAt"),
            "lastTimestamp": ended.get("finishedAt"),
            "source": {"component": COMPONENT, "host": self.node},
        }
        answer = self.api.call("POST", f"{self._path}/events", event, "application/json")
        if answer.status == 409:
            return 0
        self._check(answer, f"create an event for {pod['name']}", "create", "events")
        _log.error("%s/%s: %s: %s", pod["name"], container, REASON, message)
        return 1

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}"

    def _pods(self) -> list[dict[str, Any]]:
        # Version 0: from the API server's cache, which has an index by node.
        query = urlencode(
            {"fieldSelector": f"spec.nodeName={self.node}", "labelSelector": self.selector, "resourceVersion": "0"}
        )
        answer = self.api.call("GET", f"{self._path}/pods?{query}")
        self._check(answer, f"list pods {self.selector}", "list", "pods")
        return answer.body["items"]

    def _check(self, answer: Answer, what: str, verb: str, resource: str) -> None:
        if answer.status in {200, 201}:
            return
        advice = f"; the service account needs the verb {verb!r} on {resource}" if answer.status == 403 else ""
        raise PodError(f"{what} in {self.namespace}: HTTP {answer.status} {answer.message}{advice}")
