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
from urllib.parse import quote

from weight_cache.engines import NodeEngines
from weight_cache.errors import PodError

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

    engines: NodeEngines

    def keep(self, listed: list[dict[str, Any]]) -> int:
        """Write the cost where it isn't right yet; the number of pods that were changed. Raises NodeError, PodError.

        `listed` is what `NodeEngines.pods` gave.
        """
        engines = self.engines
        pods = [pod for pod in listed if _counts(pod)]
        if not pods:
            return 0
        cost = str(deletion_cost(len(pods), self._created(), engines.node))
        changed = 0
        for pod in pods:
            metadata = pod["metadata"]
            if metadata.get("annotations", {}).get(ANNOTATION) == cost:
                continue
            path = f"{engines.path}/pods/{quote(metadata['name'], safe='')}"
            patch = {"metadata": {"uid": metadata["uid"], "annotations": {ANNOTATION: cost}}}
            answer = engines.api.call("PATCH", path, patch, "application/merge-patch+json")
            # Gone, or replaced by another pod of the same name: nothing to write on.
            if answer.status in {404, 409}:
                continue
            engines.check(answer, f"patch pod {metadata['name']}", "patch", "pods")
            changed += 1
        if changed:
            _log.info("%d engines on this node: deletion cost %s on %d of them", len(pods), cost, changed)
        return changed

    def _created(self) -> datetime:
        node = self.engines.node
        answer = self.engines.api.call("GET", f"/api/v1/nodes/{quote(node, safe='')}")
        if answer.status != 200:
            raise PodError(f"get node {node}: HTTP {answer.status} {answer.message}")
        return datetime.fromisoformat(answer.body["metadata"]["creationTimestamp"])


def _counts(pod: dict[str, Any]) -> bool:
    """A pod that stays and runs: neither being deleted nor over."""
    return "deletionTimestamp" not in pod["metadata"] and pod.get("status", {}).get("phase") not in _GONE
