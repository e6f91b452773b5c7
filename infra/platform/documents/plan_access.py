"""What roles that preview and look for drift may do in the cluster: read what the program declares.

Nothing is written, not even as a dry run: Kubernetes authorises a dry run like the write itself
(kubernetes.io/docs/reference/using-api/api-concepts, "Dry-run authorization"), so that the right to try a change would
be the right to make it. Where a server-side dry run is forbidden, Pulumi's Kubernetes provider computes a preview from
the declaration and the state instead. Refreshing reads every object, and Helm keeps its releases in Secrets.
"""

from collections.abc import Mapping, Sequence

from srvmod.infra.labels import PLAN_GROUP, Object, metadata

RBAC = "rbac.authorization.k8s.io"
READ = ("get", "list", "watch")
DECLARED: Mapping[str, Sequence[str]] = {
    "": ("configmaps", "namespaces", "serviceaccounts", "services"),
    "admissionregistration.k8s.io": ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
    "apps": ("daemonsets", "deployments"),
    "gateway.envoyproxy.io": ("backendtrafficpolicies", "clienttrafficpolicies", "envoyproxies", "securitypolicies"),
    "gateway.networking.k8s.io": ("gatewayclasses", "gateways", "httproutes"),
    "karpenter.k8s.aws": ("ec2nodeclasses",),
    "karpenter.sh": ("nodepools",),
    "keda.sh": ("scaledobjects", "triggerauthentications"),
    "monitoring.coreos.com": ("alertmanagerconfigs", "podmonitors", "prometheusrules"),
    "networking.k8s.io": ("networkpolicies",),
    "policy": ("poddisruptionbudgets",),
    RBAC: ("clusterrolebindings", "clusterroles", "rolebindings", "roles"),
}
"""Resources that the program declares, by API group, Secrets excepted."""
LOOKED_AT: Mapping[str, Sequence[str]] = {
    "": ("endpoints", "events", "persistentvolumeclaims", "pods"),
    "apps": ("replicasets",),
}
"""What the provider looks at to tell whether a Deployment, DaemonSet or Service is ready."""


def cluster_role() -> Object:
    """Reading what is declared, in every namespace."""
    rules = [*DECLARED.items(), *LOOKED_AT.items()]
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": metadata(PLAN_GROUP),
        "rules": [
            {"apiGroups": [group], "resources": list(resources), "verbs": list(READ)} for group, resources in rules
        ],
    }


def cluster_role_binding() -> Object:
    """The ClusterRole for the group."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata(PLAN_GROUP),
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": PLAN_GROUP},
        "subjects": [_group()],
    }


def secrets_role(namespace: str) -> Object:
    """Reading a namespace's Secrets: clients' API keys in one, Helm's releases in the others."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "Role",
        "metadata": metadata(PLAN_GROUP, namespace),
        "rules": [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "list"]}],
    }


def secrets_role_binding(namespace: str) -> Object:
    """The Role for the group."""
    return {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata(PLAN_GROUP, namespace),
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": PLAN_GROUP},
        "subjects": [_group()],
    }


def _group() -> dict[str, str]:
    return {"apiGroup": RBAC, "kind": "Group", "name": PLAN_GROUP}
