"""What the weight cache's account may write: RBAC can't split a Pod's or a Node's fields, admission can."""

from __future__ import annotations

from srvmod.policies.admission.policy import Policy, Resource, Validation, map_of
from srvmod.policies.rules import Topic

ACCOUNT = "weight-cache"
NAMESPACE = "serving"
COST = "controller.kubernetes.io/pod-deletion-cost"
COLD = "srvmod.dev/weights-cold"
NODE = "authentication.kubernetes.io/node-name"
WHO = {"account": f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{ACCOUNT}'"}
OWN_NODE = (
    f"has(request.userInfo.extra) && '{NODE}' in request.userInfo.extra && request.userInfo.extra['{NODE}'].size() == 1"
    f" && request.userInfo.extra['{NODE}'][0]"
)
ABOUT = "The weight cache runs on every GPU node: who takes one node over must not reach the others through it."


def pods() -> Policy:
    """Of pods on its own node, the deletion cost."""
    same = " && ".join(
        [
            "object.spec == oldObject.spec",
            *(_same_map(part) for part in ("labels",)),
            *map(_same_list, ("finalizers", "ownerReferences")),
        ]
    )
    old, new = map_of("oldObject.metadata", "annotations"), map_of("object.metadata", "annotations")
    annotations = (
        f"{new}.all(k, k == '{COST}' || (k in {old} && {old}[k] == {new}[k])) && {old}.all(k, k == "
        f"'{COST}' || k in {new})"
    )
    fix = f"change only the annotation {COST}"
    return Policy(
        "weight-cache-pods",
        ABOUT,
        (Resource("", "v1", ("pods",), ("UPDATE",)),),
        {},
        [
            _own(f"{OWN_NODE} == object.spec.nodeName", "the pod is on another node"),
            _own(f"{same} && {annotations}", "changes more of a pod than its deletion cost", fix),
        ],
        WHO,
        scope="cluster",
    )


def nodes() -> Policy:
    """Of its own node, the removal of the startup taint."""
    fields = ("podCIDR", "podCIDRs", "providerID", "unschedulable", "configSource", "externalID")
    same = " && ".join(
        f"(has(object.spec.{one}) == has(oldObject.spec.{one}) && (!has(object.spec.{one}) || "
        f"object.spec.{one} == oldObject.spec.{one}))"
        for one in fields
    )
    rest = " && ".join(
        [_same_map("labels"), _same_map("annotations"), _same_list("finalizers"), _same_list("ownerReferences")]
    )
    old, new = (
        "(has(oldObject.spec.taints) ? oldObject.spec.taints : [])",
        "(has(object.spec.taints) ? object.spec.taints : [])",
    )
    taints = f"{new}.all(t, t in {old}) && {old}.all(t, t in {new} || t.key == '{COLD}')"
    fix = f"remove only the taint {COLD}"
    return Policy(
        "weight-cache-nodes",
        ABOUT,
        (Resource("", "v1", ("nodes",), ("UPDATE",)),),
        {},
        [
            _own(f"{OWN_NODE} == object.metadata.name", "the node is another one"),
            _own(f"{same} && {rest}", "changes more of a node than its taints", fix),
            _own(taints, "adds a taint, or removes another one", fix),
        ],
        WHO,
        scope="cluster",
    )


def _own(expression: str, what: str, fix: str = "leave it to the agent of that node") -> Validation:
    return Validation(Topic.OPERATIONS, "weight-cache", expression, what, fix)


def _same_map(field: str) -> str:
    return f"{map_of('object.metadata', field)} == {map_of('oldObject.metadata', field)}"


def _same_list(field: str) -> str:
    return f"object.metadata.?{field}.orValue([]) == oldObject.metadata.?{field}.orValue([])"


__all__ = ["ACCOUNT", "COLD", "COST", "NAMESPACE", "nodes", "pods"]
