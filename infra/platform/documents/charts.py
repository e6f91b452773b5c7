"""Values for the charts that the program installs. Everything not named keeps the chart's default.

`registry` is the mirror that images come from, as `images.registry` has it; None for the chart's own registries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi

from srvmod.infra import draining, footprint
from srvmod.infra.labels import NODES_LABEL, SYSTEM_NODES

Values = dict[str, Any]


UNSEEN: Mapping[str, str] = {
    "aws-load-balancer-controller": "https://github.com/kubernetes-sigs/aws-load-balancer-controller/blob/v3.5.0/"
    "helm/aws-load-balancer-controller/values.yaml",
    "keda": "https://github.com/kedacore/charts/blob/main/keda/values.yaml",
    "kube-prometheus-stack": "https://github.com/prometheus-community/helm-charts/blob/main/"
    "charts/kube-prometheus-stack/values.yaml",
}
"""Charts whose files no test can read, and where their values are described. Their values are as few as can be; a
test lists each, so that a new one is looked up there first."""


def karpenter(
    cluster: str, queue: str, service_account: str, *, isolated: bool, wait_seconds: int, registry: str | None = None
) -> Values:
    """Karpenter for AWS. `isolated`: the VPC reaches AWS by endpoints only, so prices can't be looked up.
    `wait_seconds` is how long a pod has to be pending before a node is bought for it (draining.node_wait_seconds): a
    scale-out starts later by as much, and a rollout of engines buys no p5.

    Node repair stays off: it force-terminates a p5 and skips draining after ten minutes of one bad condition, and
    in a pool of a few nodes its limit of 20 % unhealthy nodes, rounded up, never protects. Alerts tell a person.
    """
    return {
        "replicas": footprint.KARPENTER_REPLICAS,
        "serviceAccount": {"name": service_account},
        "settings": {
            "clusterName": cluster,
            "interruptionQueue": queue,
            "isolatedVPC": isolated,
            "batchIdleDuration": f"{wait_seconds}s",
            "batchMaxDuration": f"{draining.WINDOWS * wait_seconds}s",
            "featureGates": {"reservedCapacity": True, "nodeRepair": False},
        },
        "controller": {
            **_image(registry, "karpenter/controller"),
            "resources": {
                "requests": {"cpu": "1", "memory": "1Gi"},
                "limits": {"cpu": "1", "memory": "1Gi"},
            },
        },
        "nodeSelector": _system_nodes(),
    }


def envoy_gateway(image: str) -> Values:
    """Envoy Gateway's controller. `image` is also that of the job that makes its certificates and of the helper that
    drains each Envoy."""
    return {
        "global": {"images": {"envoyGateway": {"image": image}}},
        "deployment": {
            "replicas": footprint.ENVOY_GATEWAY_REPLICAS,
            "pod": {"nodeSelector": _system_nodes()},
        },
        "podDisruptionBudget": {"minAvailable": 1},
    }


def load_balancer_controller(
    cluster: str, region: str, service_account: str, vpc: Values, *, registry: str | None = None
) -> Values:
    """AWS Load Balancer Controller for Network Load Balancers. `vpc` is `{"vpcId": ...}` or `{"vpcTags": {...}}`:
    pods can't ask the instance metadata service for it. Web firewalls and Shield belong to ALBs; off, the role needs
    no rights to them."""
    return {
        **_image(registry, "eks/aws-load-balancer-controller"),
        "clusterName": cluster,
        "region": region,
        **vpc,
        "serviceAccount": {"name": service_account},
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
        "nodeSelector": _system_nodes(),
    }


def keda(*, monitored: bool, registry: str | None = None) -> Values:
    """KEDA, which scales engines. `monitored`: a Prometheus operator is there and takes a PodMonitor; an alert counts
    KEDA's failed questions."""
    mirror: Values = {"global": {"image": {"registry": registry}}} if registry else {}
    metrics: Values = {"enabled": True, "podMonitor": {"enabled": monitored}}
    return {**mirror, "prometheus": {"operator": metrics}, "nodeSelector": _system_nodes()}


@dataclass(frozen=True)
class RemoteWrite:
    """Where a workspace of Amazon Managed Service for Prometheus takes what was collected. It keeps one of two equal
    series where both carry the same label `cluster` and different labels `__replica__`."""

    url: pulumi.Input[str]
    region: str
    cluster: str


PROMETHEUS_RESOURCES: Mapping[str, Mapping[str, str]] = {
    "requests": {"cpu": "250m", "memory": "2Gi"},
    "limits": {"memory": "4Gi"},
}
"""A p5 exports some thousand series, a cluster of this size some ten thousand: about 1 GiB. With requests the kubelet
doesn't evict it first when a node gets short of memory."""
PROMETHEUS_KEEPS: Mapping[str, str] = {"retention": "7d", "retentionSize": "8GB"}
"""On the system node's own disk (no volume outlives a pod): what the other replica has kept goes on."""


def prometheus_stack(amazon: RemoteWrite | None = None, *, registry: str | None = None) -> Values:
    """Prometheus operator, Prometheus and Alertmanager; dashboards go to a Grafana that is there already.

    With `amazon` its Prometheus only collects: it writes everything to the workspace, whose rules and Alertmanager
    count instead of its own.

    Two replicas each collect everything and evaluate all rules; Alertmanager tells an alert of both once. Scaler and
    alerts survive one of them.

    Monitors and rules of all namespaces count, not only those that carry this release's label. EKS shows none of the
    control plane's own metrics: left on, the chart's alerts would report etcd, scheduler and controllers as down.
    """
    mirror: Values = {"global": {"imageRegistry": registry}} if registry else {}
    hidden = ("kubeControllerManager", "kubeEtcd", "kubeProxy", "kubeScheduler")
    every = {
        "serviceMonitorSelectorNilUsesHelmValues": False,
        "podMonitorSelectorNilUsesHelmValues": False,
        "ruleSelectorNilUsesHelmValues": False,
    }
    spec: Values = {
        **every,
        **PROMETHEUS_KEEPS,
        "nodeSelector": _system_nodes(),
        "replicas": footprint.PROMETHEUS_REPLICAS,
        "resources": {part: dict(amounts) for part, amounts in PROMETHEUS_RESOURCES.items()},
    }
    alerting: Values = {"alertmanager": {"alertmanagerSpec": {"nodeSelector": _system_nodes()}}}
    if amazon is not None:
        spec["remoteWrite"] = [{"url": amazon.url, "sigv4": {"region": amazon.region}}]
        spec["replicaExternalLabelName"] = "__replica__"
        spec["externalLabels"] = {"cluster": amazon.cluster}
        alerting = {"alertmanager": {"enabled": False}, "defaultRules": {"create": False}}
    return {
        **mirror,
        **{component: {"enabled": False} for component in hidden},
        "grafana": {"enabled": False},
        "prometheus": {"prometheusSpec": spec, "podDisruptionBudget": {"enabled": True}},
        **alerting,
    }


def _image(registry: str | None, path: str) -> Values:
    """The value of an image that comes from the mirror."""
    return {"image": {"repository": f"{registry}/{path}"}} if registry else {}


def _system_nodes() -> Mapping[str, str]:
    return {"kubernetes.io/os": "linux", NODES_LABEL: SYSTEM_NODES}
