"""Removing one startup taint from one node."""

import logging
import threading
from typing import Any, Final
from urllib.parse import quote

from weight_cache.errors import NodeError, StoppedError
from weight_cache.kube import Api

_log = logging.getLogger("weight_cache")
DEFAULT_TAINT: Final = "srvmod.dev/weights-cold"
_CONFLICTS: Final = {409, 422}  # 422: the `test` operation failed because someone else changed the list
_TRIES: Final = 8


def removal_patch(taints: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """JSON patch that removes every taint with this key, and nothing else, if the list is still what was read."""
    patch: list[dict[str, Any]] = []
    # From the end, so that earlier indices stay valid while the operations are applied one after another.
    for index in range(len(taints) - 1, -1, -1):
        if taints[index].get("key") == key:
            path = f"/spec/taints/{index}"
            patch += [{"op": "test", "path": path, "value": taints[index]}, {"op": "remove", "path": path}]
    return patch


def lift_taint(api: Api, node: str, key: str, stop: threading.Event, *, pause: float = 0.2) -> bool:
    """Remove the taint; False when it wasn't there. Conflicts are retried with a fresh read.

    Raises NodeError when the API refuses, StoppedError.
    """
    path = f"/api/v1/nodes/{quote(node, safe='')}"
    for attempt in range(_TRIES):
        found = api.call("GET", path)
        _check(found.status, found.message, node, "get")
        taints = found.body.get("spec", {}).get("taints") or []
        patch = removal_patch(taints, key)
        if not patch:
            return False
        answer = api.call("PATCH", path, patch, "application/json-patch+json")
        if answer.status in _CONFLICTS:
            _log.info("node %s changed meanwhile (HTTP %d), reading it again", node, answer.status)
            if stop.wait(pause * 2**attempt):
                raise StoppedError
            continue
        _check(answer.status, answer.message, node, "patch")
        return True
    raise NodeError(
        f"node {node}: taint {key} could not be removed in {_TRIES} tries; something changes it all the time"
    )


def _check(status: int, message: str, node: str, verb: str) -> None:
    if status == 200:
        return
    advice = {
        401: "; the service account's token was refused",
        403: f"; the service account needs the verb {verb!r} on nodes",
        404: "; is NODE_NAME the node's name (fieldRef spec.nodeName)?",
    }.get(status, "")
    raise NodeError(f"{verb} node {node}: HTTP {status} {message}{advice}")
