"""EKS: access entries, their policies, and pod identity associations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srvmod.local.aws import determinism
from srvmod.local.aws.context import Context, Handler
from srvmod.local.aws.eks_collections import delete, describe, list_names, taken, without
from srvmod.local.aws.eks_state import Document, arn, cluster, item
from srvmod.local.aws.wire import AwsError, page

_POLICY = "arn:aws:eks::aws:cluster-access-policy/"
ACCESS_POLICIES = {
    f"{_POLICY}{name}"
    for name in (
        "AmazonEKSClusterAdminPolicy", "AmazonEKSAdminPolicy", "AmazonEKSAdminViewPolicy", "AmazonEKSEditPolicy",
        "AmazonEKSViewPolicy", "AmazonEKSAutoNodePolicy",
    )
}  # fmt: skip
_NODE_TYPES = {"EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2"}


RESERVED_GROUPS = ("system:", "eks:", "aws:", "amazon:", "iam:")
"""How the names of Kubernetes groups must not start."""


# -- access entries -----------------------------------------------------------------------------------------------
def admit_creator(context: Context, name: str) -> None:
    """The entry that EKS makes for whoever creates cluster ``name``: an admin of the whole cluster."""
    who = {"clusterName": name, "principalArn": context.principal}
    create_access_entry(context, who)
    scope = {"type": "cluster"}
    associate_access_policy(
        context, {**who, "policyArn": f"{_POLICY}AmazonEKSClusterAdminPolicy", "accessScope": scope}
    )


def create_access_entry(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    state, principal = cluster(context, params["clusterName"]), params["principalArn"]
    if state.document["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        raise AwsError("InvalidRequestException", "the cluster's authenticationMode CONFIG_MAP has no access entries")
    taken(state.entries, principal, f"The specified access entry resource is already in use: {principal}")
    if ":role/" in principal and "/aws-reserved/" not in principal:
        context.require_role(principal, "principalArn")
    kind = params.get("type", "STANDARD")
    if kind in _NODE_TYPES and params.get("kubernetesGroups"):
        raise AwsError("InvalidParameterException", f"kubernetesGroups can't be given for an entry of type {kind}")
    if bad := [group for group in params.get("kubernetesGroups", []) if group.startswith(RESERVED_GROUPS)]:
        raise AwsError("InvalidParameterException", f"kubernetesGroups: {bad} start with one of {RESERVED_GROUPS}")
    role = principal.rsplit("/", 1)[-1]
    nodes = {"EC2_LINUX": ["system:nodes"]}
    document: Document = {
        "type": kind,
        "kubernetesGroups": nodes.get(kind, []),
        "username": "system:node:{{EC2PrivateDNSName}}" if kind in _NODE_TYPES else principal,
        "tags": {},
        **without(params),
        "accessEntryArn": arn(
            context, "access-entry", params["clusterName"], "role", context.account, role, determinism.new_id(32)
        ),
        "createdAt": determinism.now(),
        "modifiedAt": determinism.now(),
    }
    state.entries[principal] = document
    state.policies[principal] = {}
    return {"accessEntry": document}


def update_access_entry(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    document = item(context, params, "entries", "principalArn", "access entry")
    document |= without(params)
    document["modifiedAt"] = determinism.now()
    return {"accessEntry": document}


def delete_access_entry(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    item(context, params, "entries", "principalArn", "access entry")
    state = cluster(context, params["clusterName"])
    del state.entries[params["principalArn"]], state.policies[params["principalArn"]]
    return {}


def associate_access_policy(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    entry = item(context, params, "entries", "principalArn", "access entry")
    if entry["type"] in _NODE_TYPES - {"EC2"}:
        raise AwsError("InvalidRequestException", f"policies can't be associated with an entry of type {entry['type']}")
    if params["policyArn"] not in ACCESS_POLICIES:
        raise AwsError(
            "InvalidParameterException", f"policyArn: {params['policyArn']} isn't one of {sorted(ACCESS_POLICIES)}"
        )
    policy: Document = {
        "policyArn": params["policyArn"],
        "accessScope": params["accessScope"],
        "associatedAt": determinism.now(),
        "modifiedAt": determinism.now(),
    }
    cluster(context, params["clusterName"]).policies[params["principalArn"]][params["policyArn"]] = policy
    return {k: params[k] for k in ("clusterName", "principalArn")} | {"associatedAccessPolicy": policy}


def list_associated(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    item(context, params, "entries", "principalArn", "access entry")
    policies = cluster(context, params["clusterName"]).policies[params["principalArn"]]
    shown, token = page(list(policies.values()), params)
    return {k: params[k] for k in ("clusterName", "principalArn")} | {
        "associatedAccessPolicies": shown,
        "nextToken": token,
    }


def disassociate_access_policy(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    item(context, params, "entries", "principalArn", "access entry")
    policies = cluster(context, params["clusterName"]).policies[params["principalArn"]]
    if policies.pop(params["policyArn"], None) is None:
        raise AwsError("ResourceNotFoundException", f"{params['policyArn']} isn't associated", 404)
    return {}


# -- pod identity -------------------------------------------------------------------------------------------------
def create_identity(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    state = cluster(context, params["clusterName"])
    context.require_role(params["roleArn"], "roleArn")
    pair = (params["namespace"], params["serviceAccount"])
    if any((d["namespace"], d["serviceAccount"]) == pair for d in state.identities.values()):
        raise AwsError("ResourceInUseException", f"Association already exists: {pair[0]}/{pair[1]}", 409)
    identifier = f"a-{determinism.new_id(17)}"
    document: Document = {
        "tags": {},
        "disableSessionTags": False,
        **without(params),
        "associationId": identifier,
        "associationArn": arn(context, "podidentityassociation", params["clusterName"], identifier),
        "createdAt": determinism.now(),
        "modifiedAt": determinism.now(),
    }
    state.identities[identifier] = document
    return {"association": document}


def update_identity(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    document = item(context, params, "identities", "associationId", "pod identity association")
    if "roleArn" in params:
        context.require_role(params["roleArn"], "roleArn")
    document |= without(params)
    document["modifiedAt"] = determinism.now()
    return {"association": document}


def list_identities(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    keys = ("namespace", "serviceAccount")
    found = [
        {k: d[k] for k in ("clusterName", *keys, "associationArn", "associationId")}
        for d in cluster(context, params["clusterName"]).identities.values()
        if all(params.get(k) in {None, d[k]} for k in keys)
    ]
    shown, token = page(found, params)
    return {"associations": shown, "nextToken": token}


_IDENTITY = ("identities", "associationId", "pod identity association", "association")
OPERATIONS: dict[str, Handler] = {
    "CreateAccessEntry": create_access_entry,
    "DescribeAccessEntry": describe("entries", "principalArn", "access entry", "accessEntry"),
    "ListAccessEntries": list_names("entries", "accessEntries"),
    "UpdateAccessEntry": update_access_entry,
    "DeleteAccessEntry": delete_access_entry,
    "AssociateAccessPolicy": associate_access_policy,
    "ListAssociatedAccessPolicies": list_associated,
    "DisassociateAccessPolicy": disassociate_access_policy,
    "CreatePodIdentityAssociation": create_identity,
    "DescribePodIdentityAssociation": describe(*_IDENTITY),
    "ListPodIdentityAssociations": list_identities,
    "UpdatePodIdentityAssociation": update_identity,
    "DeletePodIdentityAssociation": delete(*_IDENTITY),
}
