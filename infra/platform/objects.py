"""From a document to a Pulumi resource: the one place where the two meet."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from srvmod.infra.labels import Object

ADMISSION = "admissionregistration.k8s.io/v1"

KINDS: Mapping[tuple[str, str], Callable[..., pulumi.CustomResource]] = {
    ("v1", "ConfigMap"): k8s.core.v1.ConfigMap,
    ("v1", "Namespace"): k8s.core.v1.Namespace,
    ("v1", "Secret"): k8s.core.v1.Secret,
    ("v1", "Service"): k8s.core.v1.Service,
    ("v1", "ServiceAccount"): k8s.core.v1.ServiceAccount,
    (ADMISSION, "ValidatingAdmissionPolicy"): k8s.admissionregistration.v1.ValidatingAdmissionPolicy,
    (ADMISSION, "ValidatingAdmissionPolicyBinding"): k8s.admissionregistration.v1.ValidatingAdmissionPolicyBinding,
    ("apps/v1", "DaemonSet"): k8s.apps.v1.DaemonSet,
    ("apps/v1", "Deployment"): k8s.apps.v1.Deployment,
    ("networking.k8s.io/v1", "NetworkPolicy"): k8s.networking.v1.NetworkPolicy,
    ("policy/v1", "PodDisruptionBudget"): k8s.policy.v1.PodDisruptionBudget,
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): k8s.rbac.v1.ClusterRole,
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): k8s.rbac.v1.ClusterRoleBinding,
    ("rbac.authorization.k8s.io/v1", "Role"): k8s.rbac.v1.Role,
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): k8s.rbac.v1.RoleBinding,
}
"""Built-in kinds that the program declares; any other kind is a custom resource."""

NOT_AWAITED = {"pulumi.com/skipAwait": "true"}
"""For objects that become ready only with a p5: boot, image and weights take longer than Pulumi waits, and before
the first upload of weights they never do. `srvmod status` and `srvmod local up` verify them instead."""


def declare(
    name: str,
    document: Object,
    opts: pulumi.ResourceOptions,
    *,
    awaited: bool = True,
    conditions: Sequence[str] = (),
) -> pulumi.CustomResource:
    """Declare a document's object.

    `awaited=False` marks it as verified elsewhere (see NOT_AWAITED). `conditions` of the object's status must become
    True, else the deployment fails with the names of those that aren't; set a time-out in `opts`.
    """
    metadata = dict(document["metadata"])
    annotations = dict(metadata.get("annotations", {}))
    if not awaited:
        annotations |= NOT_AWAITED
    if conditions:
        annotations["pulumi.com/waitFor"] = json.dumps([f"condition={condition}" for condition in conditions])
    if annotations:
        metadata["annotations"] = annotations
    fields: dict[str, Any] = {
        _python_name(key): value for key, value in document.items() if key not in {"apiVersion", "kind", "metadata"}
    }
    built_in = KINDS.get((document["apiVersion"], document["kind"]))
    if built_in is not None:
        return built_in(name, metadata=metadata, opts=opts, **fields)
    return k8s.apiextensions.CustomResource(
        name,
        api_version=document["apiVersion"],
        kind=document["kind"],
        metadata=metadata,
        opts=opts,
        **fields,
    )


def _python_name(key: str) -> str:
    """The SDK's argument for a top-level field: `stringData` is `string_data`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", key).lower()
