"""EKS: clusters, their updates, tags and Kubernetes versions. Everything is ACTIVE at once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC as ZONE
from datetime import datetime, time, timedelta
from typing import Any

from srvmod.local.aws import determinism, eks_access, eks_state
from srvmod.local.aws.context import Context, Handler
from srvmod.local.aws.eks_state import ClusterState, arn, cluster, clusters, record_update
from srvmod.local.aws.wire import AwsError, page

_KEPT = (
    "encryptionConfig", "upgradePolicy", "zonalShiftConfig", "remoteNetworkConfig", "computeConfig", "storageConfig",
    "deletionProtection", "controlPlaneScalingConfig", "kubeApiServerConfig", "kubeSchedulerConfig",
    "kubeControllerManagerConfig",
)  # fmt: skip
_LOG_TYPES = ["api", "audit", "authenticator", "controllerManager", "scheduler"]
_EXTENDED = timedelta(days=365)
MIN_ZONES = 2
CONFIG_MAP, CREATOR = "CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions"


def _logging(given: Mapping[str, Any] | None) -> dict[str, Any]:
    enabled = {t for group in (given or {}).get("clusterLogging", []) if group.get("enabled") for t in group["types"]}
    groups = [([t for t in _LOG_TYPES if t in enabled], True), ([t for t in _LOG_TYPES if t not in enabled], False)]
    return {"clusterLogging": [{"types": types, "enabled": on} for types, on in groups if types]}


def _vpc(context: Context, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    subnets = context.require_subnets(list(given.get("subnetIds", [])), "resourcesVpcConfig.subnetIds")
    zones = {s.availability_zone for s in subnets}
    if len(zones) < MIN_ZONES:
        raise AwsError(
            "InvalidParameterException",
            f"resourcesVpcConfig.subnetIds: subnets must be in at least two zones; {sorted(zones)} is too few",
        )
    vpcs = {s.vpc_id for s in subnets}
    if len(vpcs) != 1:
        raise AwsError("InvalidParameterException", f"resourcesVpcConfig.subnetIds lie in several VPCs: {sorted(vpcs)}")
    known = {g.id for groups in context.ec2.groups.values() for g in groups.values()}
    if missing := [g for g in given.get("securityGroupIds", []) if g not in known]:
        raise AwsError("InvalidParameterException", f"resourcesVpcConfig.securityGroupIds: {missing} do not exist")
    if not (given.get("endpointPublicAccess", True) or given.get("endpointPrivateAccess", False)):
        raise AwsError("InvalidParameterException", "Private and public endpoint access cannot be false")
    vpc_id = vpcs.pop()
    group = context.ec2.create_security_group(
        f"eks-cluster-sg-{name}-{determinism.new_id(8)}",
        "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes",
        vpc_id,
        tags={"aws:eks:cluster-name": name, f"kubernetes.io/cluster/{name}": "owned"},
    )
    return {
        "subnetIds": list(given["subnetIds"]),
        "securityGroupIds": list(given.get("securityGroupIds", [])),
        "clusterSecurityGroupId": group.id,
        "vpcId": vpc_id,
        "endpointPublicAccess": given.get("endpointPublicAccess", True),
        "endpointPrivateAccess": given.get("endpointPrivateAccess", False),
        "publicAccessCidrs": list(given.get("publicAccessCidrs") or ["0.0.0.0/0"]),
    }


def _version(context: Context, wanted: str | None) -> str:
    versions = context.world.versions
    if wanted is None:
        return next(v.version for v in versions if v.default)
    if wanted not in {v.version for v in versions}:
        known = ", ".join(v.version for v in versions)
        raise AwsError("InvalidParameterException", f"version: unsupported Kubernetes version {wanted} ({known})")
    return wanted


def _access(given: Mapping[str, Any]) -> tuple[str, bool]:
    """The authentication mode, and whether the creator becomes an admin: so it is unless the call says no."""
    mode, admits = given.get("authenticationMode", CONFIG_MAP), given.get(CREATOR, True)
    if mode == CONFIG_MAP and not admits:
        raise AwsError(
            "InvalidParameterException", f"{CREATOR} must be true if cluster authentication mode is set to {CONFIG_MAP}"
        )
    return mode, admits


def create_cluster(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    name = params["name"]
    if name in clusters(context):
        raise AwsError("ResourceInUseException", f"Cluster already exists with name: {name}", 409)
    endpoint = context.world.endpoint
    if endpoint is None:
        raise AwsError(
            "InvalidRequestException",
            "this simulation has no API server to give to a cluster: start it with --cluster-endpoint and --cluster-ca",
        )
    if "outpostConfig" in params:
        raise AwsError("InvalidParameterException", "outpostConfig isn't simulated")
    context.require_role(params["roleArn"], "roleArn")
    version = _version(context, params.get("version"))
    mode, admits_creator = _access(params.get("accessConfig", {}))
    vpc = _vpc(context, name, params["resourcesVpcConfig"])
    network = dict(params.get("kubernetesNetworkConfig", {}))
    identity = determinism.new_id(32).upper()
    document: dict[str, Any] = {
        "name": name,
        "arn": arn(context, "cluster", name),
        "createdAt": determinism.now(),
        "version": version,
        "roleArn": params["roleArn"],
        "resourcesVpcConfig": vpc,
        "kubernetesNetworkConfig": {
            "serviceIpv4Cidr": network.get("serviceIpv4Cidr", "172.20.0.0/16"),
            "ipFamily": network.get("ipFamily", "ipv4"),
            "elasticLoadBalancing": network.get("elasticLoadBalancing", {"enabled": False}),
        },
        "logging": _logging(params.get("logging")),
        "identity": {"oidc": {"issuer": f"https://oidc.eks.{context.region}.amazonaws.com/id/{identity}"}},
        "status": "ACTIVE",
        "platformVersion": "eks.1",
        "tags": dict(params.get("tags", {})),
        "health": {"issues": []},
        "accessConfig": {"authenticationMode": mode},
        "upgradePolicy": {"supportType": "EXTENDED"},
        "deletionProtection": False,
    }
    document |= {k: params[k] for k in _KEPT if k in params}
    clusters(context)[name] = ClusterState(document)
    if admits_creator and mode != CONFIG_MAP:
        eks_access.admit_creator(context, name)
    return {"cluster": _shown(context, document)}


def _shown(context: Context, document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with the API server that this simulation stands before now (it may have moved on a restart)."""
    shown = dict(document)
    if context.world.endpoint is not None:
        shown["endpoint"] = context.world.endpoint.url
        shown["certificateAuthority"] = {"data": context.world.endpoint.ca}
    return shown


def describe_cluster(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"cluster": _shown(context, cluster(context, params["name"]).document)}


def list_clusters(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    names, token = page(sorted(clusters(context)), params)
    return {"clusters": names, "nextToken": token}


def update_cluster_config(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    state = cluster(context, params["name"])
    document = state.document
    given = {k: v for k, v in params.items() if k not in {"name", "clientRequestToken"}}
    for key, value in given.items():
        if key == "logging":
            document["logging"] = _logging(value)
        elif key in {"resourcesVpcConfig", "accessConfig", "kubernetesNetworkConfig"}:
            document[key] = {**document[key], **value}
        else:
            document[key] = value
    kind = "LoggingUpdate" if "logging" in given else "VpcConfigUpdate" if "resourcesVpcConfig" in given else (
        "AccessConfigUpdate" if "accessConfig" in given else "UpgradePolicyUpdate")  # fmt: skip
    return record_update(state, kind, given)


def update_cluster_version(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    state = cluster(context, params["name"])
    wanted, present = _version(context, params["version"]), state.document["version"]
    if int(wanted.split(".")[1]) - int(present.split(".")[1]) not in {0, 1}:
        raise AwsError("InvalidParameterException", f"version: can't update from {present} to {wanted} in one step")
    state.document["version"] = wanted
    return record_update(state, "VersionUpdate", {"version": wanted})


def associate_encryption_config(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    state = cluster(context, params["clusterName"])
    if state.document.get("encryptionConfig"):
        raise AwsError("InvalidRequestException", "the cluster already has an encryption configuration")
    state.document["encryptionConfig"] = params["encryptionConfig"]
    return record_update(state, "AssociateEncryptionConfig", {})


def describe_update(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    update = cluster(context, params["name"]).updates.get(params["updateId"])
    if update is None:
        raise AwsError("ResourceNotFoundException", f"No update found for ID: {params['updateId']}", 404)
    return {"update": update}


def delete_cluster(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    name = params["name"]
    state = cluster(context, name)
    if state.document.get("deletionProtection"):
        raise AwsError("InvalidRequestException", f"cluster {name} has deletionProtection on: switch it off first")
    if state.nodegroups:
        raise AwsError("ResourceInUseException", f"Cluster has nodegroups attached: {sorted(state.nodegroups)}", 409)
    group = state.document["resourcesVpcConfig"]["clusterSecurityGroupId"]
    context.ec2.delete_security_group(group_id=group)
    del clusters(context)[name]
    return {"cluster": {**_shown(context, state.document), "status": "DELETING"}}


def describe_cluster_versions(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = set(params.get("clusterVersions", []))
    if params.get("clusterType", "eks") != "eks":
        raise AwsError("InvalidParameterException", f"clusterType {params['clusterType']!r} isn't simulated")
    shown: list[dict[str, Any]] = []
    for version in context.world.versions:
        if (wanted and version.version not in wanted) or (params.get("defaultOnly") and not version.default):
            continue
        entry: dict[str, Any] = {
            "clusterVersion": version.version,
            "clusterType": "eks",
            "defaultPlatformVersion": "eks.1",
            "defaultVersion": version.default,
            "status": "STANDARD_SUPPORT",
            "versionStatus": "STANDARD_SUPPORT",
        }
        if version.end_of_standard:
            end = datetime.combine(version.end_of_standard, time(), ZONE)
            entry |= {"endOfStandardSupportDate": end, "endOfExtendedSupportDate": end + _EXTENDED}
            if end < determinism.now():
                over = end + _EXTENDED < determinism.now()
                status = "UNSUPPORTED" if over else "EXTENDED_SUPPORT"
                entry |= {"status": status, "versionStatus": status}
        if params.get("versionStatus") in {None, entry["versionStatus"]}:
            shown.append(entry)
    versions, token = page(shown, params)
    return {"clusterVersions": versions, "nextToken": token}


def tag_resource(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    document = eks_state.tagged(context, params["resourceArn"])
    document["tags"] = {**document.get("tags", {}), **params["tags"]}
    return {}


def untag_resource(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    document = eks_state.tagged(context, params["resourceArn"])
    document["tags"] = {k: v for k, v in document.get("tags", {}).items() if k not in params["tagKeys"]}
    return {}


def list_tags(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"tags": eks_state.tagged(context, params["resourceArn"]).get("tags", {})}


OPERATIONS: dict[str, Handler] = {
    "CreateCluster": create_cluster,
    "DescribeCluster": describe_cluster,
    "ListClusters": list_clusters,
    "UpdateClusterConfig": update_cluster_config,
    "UpdateClusterVersion": update_cluster_version,
    "AssociateEncryptionConfig": associate_encryption_config,
    "DescribeUpdate": describe_update,
    "DeleteCluster": delete_cluster,
    "DescribeClusterVersions": describe_cluster_versions,
    "TagResource": tag_resource,
    "UntagResource": untag_resource,
    "ListTagsForResource": list_tags,
}
