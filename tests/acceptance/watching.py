"""What happened in the cluster, in the order in which the API server made it true.

Resource versions of all kinds are one counter of etcd, so a pod's event and a node's event can be compared exactly;
two lists read one after the other could not.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from kubernetes import watch
from kubernetes.client import CoreV1Api
from urllib3.exceptions import HTTPError

from tests.acceptance.cluster_client import api_client
from tests.acceptance.conftest import Stack

WEIGHTS_TAINT = "srvmod.dev/weights-cold"
DISRUPTED_TAINT = "karpenter.sh/disrupted"
FINISHED = ("Failed", "Succeeded")


@dataclass
class EnginePod:
    """Versions at which a pod was bound to its node and at which it began to go; None if it hasn't."""

    name: str
    node: str
    bound: int
    going: int | None = None


@dataclass
class PoolNode:
    """Versions at which the node was seen without its startup taint, and with Karpenter's disruption taint."""

    name: str
    warm: int | None = None
    disrupted: int | None = None


@dataclass
class History:
    """Engines and nodes by name, from version `began` on; what was there before is only judged by what comes after."""

    began: int = 0
    pods: dict[str, EnginePod] = field(default_factory=dict)
    nodes: dict[str, PoolNode] = field(default_factory=dict)

    def see_pod(self, pod: dict[str, Any], *, deleted: bool) -> None:
        metadata, node = pod["metadata"], pod["spec"].get("nodeName")
        if not node:
            return
        version = int(metadata["resourceVersion"])
        known = self.pods.setdefault(metadata["name"], EnginePod(metadata["name"], node, version))
        leaves = deleted or metadata.get("deletionTimestamp") or pod["status"].get("phase") in FINISHED
        if leaves and known.going is None:
            known.going = version

    def see_node(self, node: dict[str, Any], *, deleted: bool) -> None:
        metadata = node["metadata"]
        version, taints = int(metadata["resourceVersion"]), {t["key"] for t in node["spec"].get("taints") or []}
        known = self.nodes.setdefault(metadata["name"], PoolNode(metadata["name"]))
        if WEIGHTS_TAINT not in taints and known.warm is None:
            known.warm = version
        if (DISRUPTED_TAINT in taints or deleted) and known.disrupted is None:
            known.disrupted = version

    def violations(self) -> list[str]:
        """Each engine that came to a cold node or was on a node when it was disrupted."""
        wrong: list[str] = []
        for pod in self.pods.values():
            node = self.nodes.get(pod.node)
            came_cold = node is None or node.warm is None or pod.bound < node.warm
            if came_cold and pod.bound > self.began:
                wrong.append(f"{pod.name} came to {pod.node} before its weights were verified")
            elif node and node.disrupted is not None and (pod.going is None or pod.going > node.disrupted):
                wrong.append(f"{pod.node} was disrupted while it held {pod.name}")
        return sorted(wrong)


class Watching:
    """Keeps a History while the `with` block runs; a watch that ends early fails the block."""

    def __init__(self, stack: Stack) -> None:
        self._api = CoreV1Api(api_client(stack.state / "local" / "kubeconfig"))
        began = int(self._api.list_namespaced_pod("serving", limit=1).metadata.resource_version)
        self.history, self._over = History(began), threading.Event()
        self._problems: list[str] = []
        self._watches = [watch.Watch(), watch.Watch()]
        pods = {"namespace": "serving", "label_selector": "app.kubernetes.io/name=engine"}
        self._threads = [
            self._thread(self._watches[0], self._api.list_node, self.history.see_node, {}),
            self._thread(self._watches[1], self._api.list_namespaced_pod, self.history.see_pod, pods),
        ]

    def _thread(
        self, stream: watch.Watch, listing: Callable[..., Any], see: Callable[..., None], options: dict[str, Any]
    ) -> threading.Thread:
        def follow() -> None:
            try:
                # the server would end a watch of its own accord after half an hour at the earliest
                for event in stream.stream(listing, **options, _request_timeout=None):
                    if event["type"] == "ERROR":
                        raise AssertionError(str(event["raw_object"]))
                    see(event["raw_object"], deleted=event["type"] == "DELETED")
            except (HTTPError, AssertionError, OSError) as error:
                if not self._over.is_set():
                    self._problems.append(f"{listing.__name__}: {error!r}")

        return threading.Thread(target=follow, daemon=True)

    def __enter__(self) -> Watching:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for stream in self._watches:
            stream.stop()
        assert not self._problems, self._problems
