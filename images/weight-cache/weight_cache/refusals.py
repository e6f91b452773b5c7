"""Tells of engines that refused to start: Events for what the island check wrote as its container's last words.

The check runs in an engine's pod, which has neither a token nor a way to the API server; the agent of its node has.
"""

import logging
import zlib
from dataclasses import dataclass
from typing import Any, Final

from weight_cache.engines import NodeEngines

_log = logging.getLogger("weight_cache")
REASON: Final = "IslandCheckFailed"
"""First word of the check's message, and the Event's reason."""
COMPONENT: Final = "srvmod-weight-cache"
MESSAGE_BYTES: Final = 1024
"""As much as Kubernetes' own components put into an Event."""


@dataclass(frozen=True)
class Refusals:
    """Watches the engines of one node."""

    engines: NodeEngines

    def tell(self, listed: list[dict[str, Any]]) -> int:
        """Write one Event for each container that ended in the check and wasn't told of; their number. Raises
        NodeError, PodError. `listed` is what `NodeEngines.pods` gave."""
        told = 0
        for pod in listed:
            for container in pod.get("status", {}).get("containerStatuses") or []:
                for state in ("state", "lastState"):
                    ended = (container.get(state) or {}).get("terminated") or {}
                    if str(ended.get("message", "")).startswith(f"{REASON}: "):
                        told += self._event(pod["metadata"], container["name"], ended)
        return told

    def _event(self, pod: dict[str, Any], container: str, ended: dict[str, Any]) -> int:
        engines = self.engines
        message = ended["message"].removeprefix(f"{REASON}: ").encode()[:MESSAGE_BYTES].decode(errors="ignore")
        # The same end has the same name: the API server refuses to be told of it twice, also after a restart of ours.
        end = zlib.crc32(f"{pod['uid']} {container} {ended.get('finishedAt')}".encode())
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{pod['name']}.{end:08x}", "namespace": engines.namespace},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod["name"],
                "namespace": engines.namespace,
                "uid": pod["uid"],
                "fieldPath": f"spec.containers{{{container}}}",
            },
            "type": "Warning",
            "reason": REASON,
            "message": message,
            "count": 1,
            "firstTimestamp": ended.get("finishedAt"),
            "lastTimestamp": ended.get("finishedAt"),
            "source": {"component": COMPONENT, "host": engines.node},
        }
        answer = engines.api.call("POST", f"{engines.path}/events", event, "application/json")
        if answer.status == 409:
            return 0
        engines.check(answer, f"create an event for {pod['name']}", "create", "events")
        _log.error("%s/%s: %s: %s", pod["name"], container, REASON, message)
        return 1
