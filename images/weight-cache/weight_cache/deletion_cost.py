"""Which engines go first when there are too many: those that empty a whole node.

A ReplicaSet that shrinks prefers pods that share a node, which would leave many half-used nodes, and a node that
holds one engine can't be removed. So each agent writes one pod deletion cost on all engines of its own node: emptier
nodes are cheaper than fuller ones, newer nodes cheaper than older ones.
"""

import logging
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, urlencode

from weight_cache.errors import PodError
from weight_cache.kube import Answer, Api

_log = logging.getLogger("weight_cache")
ANNOTATION: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Kubernetes' own: an int32 in decimal, lower goes first."""

_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
_AGE_BITS: Final = 25
_AGE_UNIT_SECONDS: Final = 8
"""25 bits of 8 s reach to mid-2034; nodes made later count as equally new, which costs half-used nodes, no error."""
_TIE_BITS: Final = 5
"""Karpenter makes several nodes in one second; their names tell them apart."""
_GONE: Final = {"Succeeded", "Failed"}


def deletion_cost(engines: int, created: datetime, node: str) -> int:
    """The cost, an int32, of each of `engines` (1 or more) pods on `node`, which was made at `created`."""
    level = min(engines, 3) - 2
    age = int((created - _EPOCH).total_seconds()) // _AGE_UNIT_SECONDS
    newness = min(max(age, 0), 2**_AGE_BITS - 1) << _TIE_BITS | zlib.crc32(node.encode()) % 2**_TIE_BITS
    return (level << _AGE_BITS + _TIE_BITS) - newness


@dataclass(frozen=True)
class EngineCosts:
    """Keeps the deletion cost of the engines on one node."""

    api: Api
    node: str
    namespace: str
    selector: str
    """Label selector of engine pods, such as app.kubernetes.io/name=engine."""

    def keep(self) -> int:
        """Write the cost where it isn't right yet; the number of pods that were changed. Raises NodeError, PodError."""
        pods = [pod for pod in self._pods() if _counts(pod)]
        if not pods:
            return 0
        cost = str(deletion_cost(len(pods), self._created(), self.node))
        changed = 0
        for pod in pods:
            metadata = pod["metadata"]
            if metadata.get("annotations", {}).get(ANNOTATION) == cost:
                continue
            path = f"{self._collection}/{quote(metadata['name'], safe='')}"
            patch = {"metadata": {"uid": metadata["uid"], "annotations": {ANNOTATION: cost}}}
            answer = self.api.call("PATCH", path, patch, "application/merge-patch+json")
            # Gone, or replaced by another pod of the same name: nothing to write on.
            if answer.status in {404, 409}:
                continue
            self._check(answer, f"patch pod {metadata['name']}", "patch")
            changed += 1
        if changed:
            _log.info("%d engines on this node: deletion cost %s on %d of them", len(pods), cost, changed)
        return changed

    @property
    def _collection(self) -> str:
        return f"/api/v1/namespaces/{quote(self.namespace, safe='')}/pods"

    def _pods(self) -> list[dict[str, Any]]:
        # Version 0: from the API server's cache, which has an index by node.
        query = urlencode(
            {"fieldSelector": f"spec.nodeName={self.node}", "labelSelector": self.selector, "resourceVersion": "0"}
        )
        answer = self.api.call("GET", f"{self._collection}?{query}")
        self._check(answer, f"list pods {self.selector}", "list")
        return answer.body["items"]

    def _created(self) -> datetime:
        answer = self.api.call("GET", f"/api/v1/nodes/{quote(self.node, safe='')}")
        if answer.status != 200:
            raise PodError(f"get node {self.node}: HTTP {answer.status} {answer.message}")
        return datetime.fromisoformat(answer.body["metadata"]["creationTimestamp"])

    def _check(self, answer: Answer, what: str, verb: str) -> None:
        if answer.status == 200:
            return
        advice = f"; the service account needs the verb {verb!r} on pods" if answer.status == 403 else ""
        raise PodError(f"{what} in {self.namespace}: HTTP {answer.status} {answer.message}{advice}")


def _counts(pod: dict[str, Any]) -> bool:
    """A pod that stays and runs: neither being deleted nor over."""
    return "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") not in _GONE
