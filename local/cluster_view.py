"""Nodes and engines as the API server has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from srvmod.local.kube import api_client

WEIGHTS_TAINT = "srvmod.dev/weights-cold"
PRETENDED = "srvmod.dev/pretended"


def nodes(kubeconfig: Path) -> list[dict[str, Any]]:
    """One entry per p5 node: name, instanceType, ready, weightsReady, pretended, engines with GPUs and readiness."""
    from kubernetes.client import CoreV1Api

    core = CoreV1Api(api_client(kubeconfig))
    pods = core.list_namespaced_pod("serving", label_selector="app.kubernetes.io/name=engine", _request_timeout=5).items
    seen = []
    for node in core.list_node(_request_timeout=5).items:
        labels, annotations = node.metadata.labels or {}, node.metadata.annotations or {}
        engines = [
            {"name": p.metadata.name, "ready": _ready(p.status), "gpus": annotations_gpus(p), "podIp": p.status.pod_ip}
            for p in sorted(pods, key=lambda p: p.metadata.name)
            if p.spec.node_name == node.metadata.name
        ]
        seen.append(
            {
                "name": node.metadata.name,
                "instanceType": labels.get("node.kubernetes.io/instance-type", ""),
                "ready": _ready(node.status),
                "pretended": annotations.get(PRETENDED) == "true",
                "weightsReady": WEIGHTS_TAINT not in {t.key for t in node.spec.taints or []},
                "engines": engines,
            }
        )
    return sorted(seen, key=lambda n: n["name"])


def _ready(status: Any) -> bool:
    return any(c.type == "Ready" and c.status == "True" for c in status.conditions or [])


def annotations_gpus(pod: Any) -> list[int]:
    """GPU indices that the node gave the pod, from the annotation that the launcher copies from the kubelet."""
    text = (pod.metadata.annotations or {}).get("srvmod.dev/gpus", "")
    return [int(item) for item in text.split(",") if item]


def engines_wanted(kubeconfig: Path) -> int:
    """Replicas that the engine Deployment asks for."""
    from kubernetes.client import AppsV1Api

    return AppsV1Api(api_client(kubeconfig)).read_namespaced_deployment("engine", "serving").spec.replicas


def node_class_problem(kubeconfig: Path) -> str:
    """Why Karpenter doesn't launch: the node class's conditions that aren't True, with Karpenter's own words."""
    from kubernetes.client import CustomObjectsApi

    found = CustomObjectsApi(api_client(kubeconfig)).list_cluster_custom_object(
        "karpenter.k8s.aws", "v1", "ec2nodeclasses"
    )
    wrong = [
        f"{item['metadata']['name']}: {c['type']}={c['status']}: {c.get('message') or c.get('reason', '')}"
        for item in found["items"]
        for c in item.get("status", {}).get("conditions", [])
        if c["status"] != "True" and c["type"] != "Ready"
    ]
    return "; ".join(wrong)
