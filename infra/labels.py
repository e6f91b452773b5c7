"""The words that objects in the cluster are labelled, tainted and named with."""

from typing import Any

PREFIX = "srvmod.dev/"
POOL_LABEL = f"{PREFIX}pool"
POOL_TAINT = f"{PREFIX}tp4"
WEIGHTS_COLD_TAINT = f"{PREFIX}weights-cold"
NODES_LABEL = f"{PREFIX}nodes"
SYSTEM_NODES = "system"
GPU = "nvidia.com/gpu"
GPU_PRESENT_LABEL = "nvidia.com/gpu.present"

SERVING = "serving"
"""Namespace of engines, weight cache, gateway and keys."""
ENVOY_GATEWAY_NAMESPACE = "envoy-gateway-system"
METRICS_NAMESPACE = "monitoring"
"""Namespace of Prometheus: the only one beside the gateway's that reaches an engine."""
PROMETHEUS_ACCOUNT = "kube-prometheus-stack-prometheus"
ALERTMANAGER_ACCOUNT = "kube-prometheus-stack-alertmanager"
"""Service accounts that the chart kube-prometheus-stack makes."""
KEDA_NAMESPACE = "keda"
KEDA_ACCOUNT = "keda-operator"
"""The service account that KEDA asks Prometheus with."""
LOAD_BALANCER_NAMESPACE = "kube-system"
LOAD_BALANCER_CONTROLLER = "aws-load-balancer-controller"
"""The load balancer controller's service account."""
KARPENTER_NAMESPACE = "kube-system"
KARPENTER = "karpenter"
"""Karpenter's service account."""
ENGINE = "engine"
"""The engines' Deployment, Service, container and route."""
WEIGHT_CACHE = "weight-cache"
"""The weight cache's DaemonSet and service account."""

PLAN_GROUP = "srvmod-plan"
"""Kubernetes group of the roles that preview and look for drift, and the name of its ClusterRole."""

NAME_LABEL = "app.kubernetes.io/name"
PART_OF_LABEL = "app.kubernetes.io/part-of"

NAMESPACE_LABEL = "kubernetes.io/metadata.name"
"""Kubernetes itself puts it on every namespace."""

Object = dict[str, Any]


def labels(name: str) -> dict[str, str]:
    """Labels of everything that belongs to the application `name`."""
    return {NAME_LABEL: name, PART_OF_LABEL: "srvmod"}


def selector(name: str) -> dict[str, str]:
    """The labels to select the pods of `name` by: the ones that never change."""
    return {NAME_LABEL: name}


def metadata(name: str, namespace: str | None = None, **more: Any) -> Object:
    """Metadata of an object: name, namespace (None for cluster-scoped ones) and labels, then `more`."""
    place = {"namespace": namespace} if namespace else {}
    return {"name": name, **place, "labels": labels(name), **more}


def taint(key: str) -> dict[str, str]:
    """A NoSchedule taint of ours."""
    return {"key": key, "value": "true", "effect": "NoSchedule"}


def toleration(key: str) -> dict[str, str]:
    """Tolerates `taint(key)`."""
    return {"key": key, "operator": "Equal", "value": "true", "effect": "NoSchedule"}
