"""Nodes and engines as the API server has them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srvmod.local.api import Api, Object, condition

WEIGHTS_TAINT = "srvmod.dev/weights-cold"
PRETENDED = "srvmod.dev/pretended"
ENGINES_ANNOTATION = "srvmod.dev/engines"
"""The scaler's minimum, as the program notes it on the Deployment."""
ENGINE_LABEL = "srvmod.dev/engine"
DEPLOYMENT = "/apis/apps/v1/namespaces/serving/deployments/engine"
ENGINE_PODS = "/api/v1/namespaces/serving/pods"
TIMEOUT_SECONDS = 5.0


@dataclass(frozen=True)
class EnginesAsked:
    """`count`: the Deployment's replicas, and what its scaler will make of them at once. `kind`: vllm or simulated."""

    kind: str
    count: int


def ready_engines(nodes: Sequence[Object]) -> int:
    """Engines of `ClusterView.nodes()` that are ready."""
    return sum(engine["ready"] for node in nodes for engine in node["engines"])


class ClusterView:
    """Asks one cluster, over connections that are kept between questions."""

    def __init__(self, kubeconfig: Path) -> None:
        self.api = Api(kubeconfig, TIMEOUT_SECONDS)

    def nodes(self) -> list[dict[str, Any]]:
        """One entry per p5 node: name, instanceType, ready, weightsReady, pretended, engines with GPUs, readiness."""
        pods = self.api.get(f"{ENGINE_PODS}?labelSelector=app.kubernetes.io%2Fname%3Dengine")["items"]
        seen = [_node(node, pods) for node in self.api.get("/api/v1/nodes")["items"]]
        return sorted(seen, key=lambda n: n["name"])

    def engines_asked(self) -> EnginesAsked | None:
        """What the program has asked for; None before it has made the Deployment."""
        deployment = self.api.get_or_none(DEPLOYMENT)
        if deployment is None:
            return None
        noted = deployment["metadata"].get("annotations", {}).get(ENGINES_ANNOTATION, 0)
        return EnginesAsked(
            kind=deployment["spec"]["template"]["metadata"]["labels"][ENGINE_LABEL],
            count=max(deployment["spec"].get("replicas", 0), int(noted)),
        )

    def launches(self) -> list[str]:
        """Nodes that Karpenter has been asked for and that haven't registered, each with how far it is."""
        claims = self.api.get("/apis/karpenter.sh/v1/nodeclaims")["items"]
        return [
            f"{claim['metadata']['name']}: {'boots' if condition(claim, 'Launched') else 'Karpenter launches it'}"
            for claim in claims
            if not condition(claim, "Registered")
        ]

    def node_class_problem(self) -> str:
        """Why Karpenter doesn't launch: the node classes' conditions that aren't True, in Karpenter's own words."""
        found = self.api.get("/apis/karpenter.k8s.aws/v1/ec2nodeclasses")
        wrong = [
            f"{item['metadata']['name']}: {c['type']}={c['status']}: {c.get('message') or c.get('reason', '')}"
            for item in found["items"]
            for c in item.get("status", {}).get("conditions", [])
            if c["status"] != "True" and c["type"] != "Ready"
        ]
        return "; ".join(wrong)


def _node(node: Object, pods: list[Object]) -> dict[str, Any]:
    meta = node["metadata"]
    return {
        "name": meta["name"],
        "instanceType": meta.get("labels", {}).get("node.kubernetes.io/instance-type", ""),
        "ready": condition(node, "Ready"),
        "pretended": meta.get("annotations", {}).get(PRETENDED) == "true",
        "weightsReady": WEIGHTS_TAINT not in {taint["key"] for taint in node["spec"].get("taints", [])},
        "engines": [
            {
                "name": pod["metadata"]["name"],
                "ready": condition(pod, "Ready"),
                "gpus": _gpus(pod),
                "podIp": pod["status"].get("podIP"),
            }
            for pod in sorted(pods, key=lambda pod: pod["metadata"]["name"])
            if pod["spec"].get("nodeName") == meta["name"]
        ],
    }


def _gpus(pod: Object) -> list[int]:
    """GPU indices that the node gave the pod, from the annotation that the launcher copies from the kubelet."""
    text = pod["metadata"].get("annotations", {}).get("srvmod.dev/gpus", "")
    return [int(item) for item in text.split(",") if item]
