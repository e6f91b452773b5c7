"""Nodes and engines as the API server has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kubernetes.client import AppsV1Api, CoreV1Api, CustomObjectsApi

from srvmod.local.kube import api_client, untyped

WEIGHTS_TAINT = "srvmod.dev/weights-cold"
PRETENDED = "srvmod.dev/pretended"
ENGINES_ANNOTATION = "srvmod.dev/engines"
"""The scaler's minimum, as the program notes it on the Deployment."""


class ClusterView:
    """Asks one cluster, over connections that are kept between questions."""

    def __init__(self, kubeconfig: Path) -> None:
        client = api_client(kubeconfig)
        self.core, self.apps, self.objects = (
            untyped(CoreV1Api(client)),
            untyped(AppsV1Api(client)),
            untyped(CustomObjectsApi(client)),
        )

    def nodes(self) -> list[dict[str, Any]]:
        """One entry per p5 node: name, instanceType, ready, weightsReady, pretended, engines with GPUs, readiness."""
        pods = self.core.list_namespaced_pod(
            "serving", label_selector="app.kubernetes.io/name=engine", _request_timeout=5
        ).items
        seen = [_node(node, pods) for node in self.core.list_node(_request_timeout=5).items]
        return sorted(seen, key=lambda n: n["name"])

    def engines_wanted(self) -> int:
        """Engines that have to be there: the Deployment's replicas, and what its scaler will make of them at once."""
        deployment = self.apps.read_namespaced_deployment("engine", "serving")
        return max(deployment.spec.replicas, int((deployment.metadata.annotations or {}).get(ENGINES_ANNOTATION, 0)))

    def node_class_problem(self) -> str:
        """Why Karpenter doesn't launch: the node classes' conditions that aren't True, in Karpenter's own words."""
        found = self.objects.list_cluster_custom_object("karpenter.k8s.aws", "v1", "ec2nodeclasses")
        wrong = [
            f"{item['metadata']['name']}: {c['type']}={c['status']}: {c.get('message') or c.get('reason', '')}"
            for item in found["items"]
            for c in item.get("status", {}).get("conditions", [])
            if c["status"] != "True" and c["type"] != "Ready"
        ]
        return "; ".join(wrong)


def _node(node: Any, pods: list[Any]) -> dict[str, Any]:
    labels, annotations = node.metadata.labels or {}, node.metadata.annotations or {}
    return {
        "name": node.metadata.name,
        "instanceType": labels.get("node.kubernetes.io/instance-type", ""),
        "ready": _ready(node.status),
        "pretended": annotations.get(PRETENDED) == "true",
        "weightsReady": WEIGHTS_TAINT not in {t.key for t in node.spec.taints or []},
        "engines": [
            {"name": p.metadata.name, "ready": _ready(p.status), "gpus": _gpus(p), "podIp": p.status.pod_ip}
            for p in sorted(pods, key=lambda p: p.metadata.name)
            if p.spec.node_name == node.metadata.name
        ],
    }


def _ready(status: Any) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in status.conditions or [])


def _gpus(pod: Any) -> list[int]:
    """GPU indices that the node gave the pod, from the annotation that the launcher copies from the kubelet."""
    text = (pod.metadata.annotations or {}).get("srvmod.dev/gpus", "")
    return [int(item) for item in text.split(",") if item]
