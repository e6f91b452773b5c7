"""EKS: node groups and add-ons.

Node groups have no instances here: the pods of system controllers run beside the API server in the local stack.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from srvmod.local.aws import determinism, eks_access
from srvmod.local.aws.context import Context, Handler
from srvmod.local.aws.eks_collections import delete, describe, list_names, taken, without
from srvmod.local.aws.eks_state import Document, arn, cluster, item, record_update
from srvmod.local.aws.wire import AwsError, page

ADDONS = {
    "vpc-cni", "coredns", "kube-proxy", "eks-pod-identity-agent", "aws-ebs-csi-driver", "metrics-server",
    "eks-node-monitoring-agent", "aws-mountpoint-s3-csi-driver",
}  # fmt: skip
_ADDON_VERSION = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")


# -- node groups ------------------------------------------------------------------------------------------------
def _check_scaling(scaling: Mapping[str, int]) -> None:
    """minSize <= desiredSize <= maxSize, in EKS's words."""
    low, desired, high = (scaling[key] for key in ("minSize", "desiredSize", "maxSize"))
    if low > desired:
        raise AwsError(
            "InvalidParameterException", f"Minimum capacity {low} can't be greater than desired size {desired}"
        )
    if desired > high:
        raise AwsError("InvalidParameterException", f"desired capacity {desired} can't be greater than max size {high}")


def create_nodegroup(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    state, name = cluster(context, params["clusterName"]), params["nodegroupName"]
    taken(state.nodegroups, name, f"NodeGroup already exists with name {name}")
    context.require_role(params["nodeRole"], "nodeRole")
    context.require_subnets(list(params["subnets"]), "subnets")
    scaling = params.get("scalingConfig", {"minSize": 1, "maxSize": 2, "desiredSize": 2})
    _check_scaling(scaling)
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
        **without(params),
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
    _check_scaling({**document["scalingConfig"], **params.get("scalingConfig", {})})
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
    return record_update(cluster(context, params["clusterName"]), "ConfigUpdate", without(params))


def update_nodegroup_version(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    document = item(context, params, "nodegroups", "nodegroupName", "node group")
    document |= {k: params[k] for k in ("version", "releaseVersion", "launchTemplate") if k in params}
    return record_update(cluster(context, params["clusterName"]), "VersionUpdate", without(params))


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
    taken(state.addons, name, f"Addon already exists: {name}")
    _check_addon(context, params)
    document: Document = {
        "addonVersion": "v0.0.0-eksbuild.1",
        "tags": {},
        **without(params, "resolveConflicts", "podIdentityAssociations"),
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
        eks_access.create_identity(context, {**given, "clusterName": params["clusterName"], "namespace": namespace})[
            "association"
        ]["associationArn"]
        for given in params.get("podIdentityAssociations", [])
    ]


def update_addon(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    document = item(context, params, "addons", "addonName", "addon")
    _check_addon(context, params)
    document |= without(params, "resolveConflicts", "podIdentityAssociations")
    document["modifiedAt"] = determinism.now()
    return record_update(cluster(context, params["clusterName"]), "AddonUpdate", without(params))


_NODEGROUP = ("nodegroups", "nodegroupName", "node group", "nodegroup")


def describe_addon_versions(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Versions of add-ons, by name if one is given; a version goes with every Kubernetes version here."""
    name, kubernetes = params.get("addonName"), params.get("kubernetesVersion")
    known = [version.version for version in context.world.versions if kubernetes in {None, version.version}]
    compatible = [{"clusterVersion": version, "defaultVersion": True} for version in known]
    found = [
        {
            "addonName": addon,
            "addonVersions": [
                {"addonVersion": version, "architecture": ["amd64", "arm64"], "compatibilities": compatible}
                for version in versions
                if known
            ],
        }
        for addon, versions in sorted(context.world.addons.items())
        if name in {None, addon}
    ]
    shown, token = page(found, params)
    return {"addons": shown, "nextToken": token}


_ADDON = ("addons", "addonName", "addon", "addon")
OPERATIONS: dict[str, Handler] = {
    "CreateNodegroup": create_nodegroup,
    "DescribeNodegroup": describe(*_NODEGROUP),
    "ListNodegroups": list_names("nodegroups", "nodegroups"),
    "UpdateNodegroupConfig": update_nodegroup_config,
    "UpdateNodegroupVersion": update_nodegroup_version,
    "DeleteNodegroup": delete(*_NODEGROUP),
    "CreateAddon": create_addon,
    "DescribeAddon": describe(*_ADDON),
    "ListAddons": list_names("addons", "addons"),
    "UpdateAddon": update_addon,
    "DeleteAddon": delete(*_ADDON),
    "DescribeAddonVersions": describe_addon_versions,
}
