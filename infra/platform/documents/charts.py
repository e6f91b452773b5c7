"""Values for the charts that the program installs. Everything not named keeps the chart's default."""

from collections.abc import Mapping
from typing import Any

from srvmod.infra.labels import NODES_LABEL, SYSTEM_NODES

Values = dict[str, Any]


def karpenter(cluster: str, queue: str, service_account: str, *, isolated: bool) -> Values:
    """Karpenter for AWS. `isolated`: the VPC reaches AWS by endpoints only, so prices can't be looked up.

    Node repair stays off: it force-terminates a p5 and skips draining after ten minutes of one bad condition, and
    in a pool of a few nodes its limit of 20 % unhealthy nodes, rounded up, never protects. Alerts tell a person.
    """
    return {
        "replicas": 2,
        "serviceAccount": {"name": service_account},
        "settings": {
            "clusterName": cluster,
            "interruptionQueue": queue,
            "isolatedVPC": isolated,
            "featureGates": {"reservedCapacity": True, "nodeRepair": False},
        },
        "controller": {
            "resources": {
                "requests": {"cpu": "1", "memory": "1Gi"},
                "limits": {"cpu": "1", "memory": "1Gi"},
            }
        },
        "nodeSelector": _system_nodes(),
    }


def envoy_gateway(image: str | None) -> Values:
    """Envoy Gateway's controller; `image` only when it comes from a mirror."""
    mirror: Values = {"global": {"images": {"envoyGateway": {"image": image}}}} if image else {}
    return {
        **mirror,
        "deployment": {
            "replicas": 2,
            "pod": {"nodeSelector": _system_nodes()},
        },
        "podDisruptionBudget": {"minAvailable": 1},
    }


def load_balancer_controller(cluster: str, region: str, service_account: str, vpc: Values) -> Values:
    """AWS Load Balancer Controller for Network Load Balancers. `vpc` is `{"vpcId": ...}` or `{"vpcTags": {...}}`:
    pods can't ask the instance metadata service for it. Web firewalls and Shield belong to ALBs; off, the role needs
    no rights to them."""
    return {
        "clusterName": cluster,
        "region": region,
        **vpc,
        "serviceAccount": {"name": service_account},
        "enableShield": False,
        "enableWaf": False,
        "enableWafv2": False,
        "nodeSelector": _system_nodes(),
    }


def keda() -> Values:
    """KEDA, which scales engines."""
    return {"nodeSelector": _system_nodes()}


def prometheus_stack() -> Values:
    """Prometheus operator, Prometheus and Alertmanager; dashboards go to a Grafana that is there already.

    Monitors and rules of all namespaces count, not only those that carry this release's label.
    """
    every = {
        "serviceMonitorSelectorNilUsesHelmValues": False,
        "podMonitorSelectorNilUsesHelmValues": False,
        "ruleSelectorNilUsesHelmValues": False,
    }
    return {
        "grafana": {"enabled": False},
        "prometheus": {"prometheusSpec": {**every, "nodeSelector": _system_nodes()}},
        "alertmanager": {"alertmanagerSpec": {"nodeSelector": _system_nodes()}},
    }


def _system_nodes() -> Mapping[str, str]:
    return {"kubernetes.io/os": "linux", NODES_LABEL: SYSTEM_NODES}
