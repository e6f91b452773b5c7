"""EKS: what hangs on a cluster — node groups, add-ons, access entries and policies, pod identity associations.

Node groups have no instances here: the pods of system controllers run beside the API server in the local stack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from srvmod.local.aws import determinism
from srvmod.local.aws.context import Context, Handler
from srvmod.local.aws.eks_state import Document, arn, cluster, item, record_update
from srvmod.local.aws.wire import AwsError, page

ADDONS = {
    "vpc-cni", "coredns", "kube-proxy", "eks-pod-identity-agent", "aws-ebs-csi-driver", "metrics-server",
    "eks-node-monitoring-agent", "aws-mountpoint-s3-csi-driver",
}  # fmt: skip
ACCESS_POLICIES = {
    f"arn:aws:eks::aws:cluster-access-policy/{name}"
    for name in (
        "AmazonEKSClusterAdminPolicy", "AmazonEKSAdminPolicy", "AmazonEKSAdminViewPolicy", "AmazonEKSEditPolicy",
        "AmazonEKSViewPolicy", "AmazonEKSAutoNodePolicy",
    )
}  # fmt: skip
_ADDON_VERSION = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")
_NODE_TYPES = {"EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2"}


def _without(params: Mapping[str, Any], *names: str) -> Document:
    return {k: v for k, v in params.items() if k not in {"clientRequestToken", *names}}


def _taken(collection: Mapping[str, Any], key: str, message: str) -> None:
    if key in collection:
        raise AwsError("ResourceInUseException", message, 409)


# -- node groups ------------------------------------------------------------------------------------------------
def create_nodegroup(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    state, name = cluster(context, params["clusterName"]), params["nodegroupName"]
    _taken(state.nodegroups, name, f"NodeGroup already exists with name {name}")
    context.require_role(params["nodeRole"], "nodeRole")
    context.require_subnets(list(params["subnets"]), "subnets")
    scaling = params.get("scalingConfig", {"minSize": 1, "maxSize": 2, "desiredSize": 2})
    if not scaling["minSize"] <= scaling["desiredSize"] <= scaling["maxSize"]:
        raise AwsError("InvalidParameterException", f"scalingConfig: minSize <= desiredSize <= maxSize, not {scaling}")
    version = params.get("version", state.document["version"])
    identifier = determinism.new_id(32)
    document: Document = {
        "version": version,
        "releaseVersion": params.get("releaseVersion", f"{version}.0-simulated"),
        "status": "ACTIVE",
        "capacityType": "ON_DEMAND",
        "instanceTypes": ["t3.medium"],
        "amiType": "AL2023_x86_64_STANDARD",
        "diskSize": 20,
        "labels": {},
        "taints": [],
        "tags": {},
        "updateConfig": {"maxUnavailable": 1},
        **_without(params),
        "scalingConfig": scaling,
        "nodegroupArn": arn(context, "nodegroup", params["clusterName"], name, identifier),
        "createdAt": determinism.now(),
        "modifiedAt": determinism.now(),
        "resources": {"autoScalingGroups": [{"name": f"eks-{name}-{identifier}"}]},
        "health": {"issues": []},
    }
    state.nodegroups[name] = document
    return {"nodegroup": document}


def update_nodegroup_config(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    document = item(context, params, "nodegroups", "nodegroupName", "node group")
    labels, taints = params.get("labels", {}), params.get("taints", {})
    kept = {k: v for k, v in document["labels"].items() if k not in labels.get("removeLabels", [])}
    document["labels"] = {**kept, **labels.get("addOrUpdateLabels", {})}
    changed = [*taints.get("addOrUpdateTaints", []), *taints.get("removeTaints", [])]
    keys = {(t["key"], t["effect"]) for t in changed}
    document["taints"] = [t for t in document["taints"] if (t["key"], t["effect"]) not in keys]
    document["taints"] += taints.get("addOrUpdateTaints", [])
    for key in ("scalingConfig", "updateConfig", "nodeRepairConfig", "warmPoolConfig"):
        if key in params:
            document[key] = {**document.get(key, {}), **params[key]}
    document["modifiedAt"] = determinism.now()
    return record_update(cluster(context, params["clusterName"]), "ConfigUpdate", _without(params))


def update_nodegroup_version(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    document = item(context, params, "nodegroups", "nodegroupName", "node group")
    document |= {k: params[k] for k in ("version", "releaseVersion", "launchTemplate") if k in params}
    return record_update(cluster(context, params["clusterName"]), "VersionUpdate", _without(params))


# -- add-ons ----------------------------------------------------------------------------------------------------
def _check_addon(context: Context, params: Mapping[str, Any]) -> None:
    if params["addonName"] not in ADDONS:
        raise AwsError(
            "InvalidParameterException", f"addonName: Addon {params['addonName']} isn't one of {sorted(ADDONS)}"
        )
    version = params.get("addonVersion")
    if version is not None and not _ADDON_VERSION.fullmatch(version):
        raise AwsError("InvalidParameterException", f"addonVersion: {version!r} isn't like v1.2.3-eksbuild.4")
    if role := params.get("serviceAccountRoleArn"):
        context.require_role(role, "serviceAccountRoleArn")
    for association in params.get("podIdentityAssociations", []):
        context.require_role(association["roleArn"], "podIdentityAssociations.roleArn")


def create_addon(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    state, name = cluster(context, params["clusterName"]), params["addonName"]
    _taken(state.addons, name, f"Addon already exists: {name}")
    _check_addon(context, params)
    document: Document = {
        "addonVersion": "v0.0.0-eksbuild.1",
        "tags": {},
        **_without(params, "resolveConflicts", "podIdentityAssociations"),
        "status": "ACTIVE",
        "health": {"issues": []},
        "addonArn": arn(context, "addon", params["clusterName"], name, determinism.new_id(32)),
        "createdAt": determinism.now(),
        "modifiedAt": determinism.now(),
        "publisher": "eks",
        "owner": "aws",
        "podIdentityAssociations": _addon_identities(context, params),
    }
    state.addons[name] = document
    return {"addon": document}


def _addon_identities(context: Context, params: Mapping[str, Any]) -> list[str]:
    namespace = "kube-system"
    return [
        create_identity(context, {**given, "clusterName": params["clusterName"], "namespace": namespace})[
            "association"
        ]["associationArn"]
        for given in params.get("podIdentityAssociations", [])
    ]


def update_addon(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    document = item(context, params, "addons", "addonName", "addon")
    _check_addon(context, params)
    document |= _without(params, "resolveConflicts", "podIdentityAssociations")
    document["modifiedAt"] = determinism.now()
    return record_update(cluster(context, params["clusterName"]), "AddonUpdate", _without(params))


# -- access entries -----------------------------------------------------------------------------------------------
def create_access_entry(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    state, principal = cluster(context, params["clusterName"]), params["principalArn"]
    if state.document["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        raise AwsError("InvalidRequestException", "the cluster's authenticationMode CONFIG_MAP has no access entries")
    _taken(state.entries, principal, f"The specified access entry resource is already in use: {principal}")
    if ":role/" in principal and "/aws-reserved/" not in principal:
        context.require_role(principal, "principalArn")
    kind = params.get("type", "STANDARD")
    if kind in _NODE_TYPES and params.get("kubernetesGroups"):
        raise AwsError("InvalidParameterException", f"kubernetesGroups can't be given for an entry of type {kind}")
    role = principal.rsplit("/", 1)[-1]
    nodes = {"EC2_LINUX": ["system:nodes"]}
    document: Document = {
        "type": kind,
        "kubernetesGroups": nodes.get(kind, []),
        "username": "system:node:{{EC2PrivateDNSName}}" if kind in _NODE_TYPES else principal,
        "tags": {},
        **_without(params),
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
    document |= _without(params)
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
        **_without(params),
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
    document |= _without(params)
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


def _describe(kind: str, key: str, label: str, out: str) -> Handler:
    return lambda context, params: {out: item(context, params, kind, key, label)}


def _list(kind: str, out: str) -> Handler:
    def handler(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
        shown, token = page(sorted(getattr(cluster(context, params["clusterName"]), kind)), params)
        return {out: shown, "nextToken": token}

    return handler


def _delete(kind: str, key: str, label: str, out: str) -> Handler:
    def handler(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
        document = item(context, params, kind, key, label)
        del getattr(cluster(context, params["clusterName"]), kind)[params[key]]
        return {out: {**document, "status": "DELETING"} if "status" in document else document}

    return handler


_NODEGROUP = ("nodegroups", "nodegroupName", "node group", "nodegroup")
_ADDON = ("addons", "addonName", "addon", "addon")
_IDENTITY = ("identities", "associationId", "pod identity association", "association")
OPERATIONS: dict[str, Handler] = {
    "CreateNodegroup": create_nodegroup,
    "DescribeNodegroup": _describe(*_NODEGROUP),
    "ListNodegroups": _list("nodegroups", "nodegroups"),
    "UpdateNodegroupConfig": update_nodegroup_config,
    "UpdateNodegroupVersion": update_nodegroup_version,
    "DeleteNodegroup": _delete(*_NODEGROUP),
    "CreateAddon": create_addon,
    "DescribeAddon": _describe(*_ADDON),
    "ListAddons": _list("addons", "addons"),
    "UpdateAddon": update_addon,
    "DeleteAddon": _delete(*_ADDON),
    "CreateAccessEntry": create_access_entry,
    "DescribeAccessEntry": _describe("entries", "principalArn", "access entry", "accessEntry"),
    "ListAccessEntries": _list("entries", "accessEntries"),
    "UpdateAccessEntry": update_access_entry,
    "DeleteAccessEntry": delete_access_entry,
    "AssociateAccessPolicy": associate_access_policy,
    "ListAssociatedAccessPolicies": list_associated,
    "DisassociateAccessPolicy": disassociate_access_policy,
    "CreatePodIdentityAssociation": create_identity,
    "DescribePodIdentityAssociation": _describe(*_IDENTITY),
    "ListPodIdentityAssociations": list_identities,
    "UpdatePodIdentityAssociation": update_identity,
    "DeletePodIdentityAssociation": _delete(*_IDENTITY),
}
