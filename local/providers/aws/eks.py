"""EKS: clusters and node groups."""

from __future__ import annotations

from typing import ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.aws.eks_common import changed, own, retag, time_text
from srvmod.local.providers.values import Props

_VPC = {
    "subnetIds": Arg("SubnetIds", required=True, unordered=True),
    "securityGroupIds": Arg("SecurityGroupIds", unordered=True),
    "endpointPrivateAccess": Arg("EndpointPrivateAccess"),
    "endpointPublicAccess": Arg("EndpointPublicAccess"),
    "publicAccessCidrs": Arg("PublicAccessCidrs", unordered=True),
}


class Cluster(Resource):
    token = "aws:eks/cluster:Cluster"
    cfn = "AWS::EKS::Cluster"
    args: ClassVar = {
        "name": Arg("Name"),
        "roleArn": Arg("RoleArn", required=True),
        "version": Arg("Version"),
        "vpcConfig": Arg("ResourcesVpcConfig", required=True, of=_VPC),
        "accessConfig": Arg("AccessConfig", of={
            "authenticationMode": Arg("AuthenticationMode"),
            "bootstrapClusterCreatorAdminPermissions": Arg("BootstrapClusterCreatorAdminPermissions"),
        }),
        "bootstrapSelfManagedAddons": Arg("BootstrapSelfManagedAddons"),
        "deletionProtection": Arg("DeletionProtection"),
        "enabledClusterLogTypes": Arg("Logging", unordered=True),
        "encryptionConfig": Arg("EncryptionConfig", of={
            "provider": Arg("Provider", of={"keyArn": Arg("KeyArn")}), "resources": Arg("Resources"),
        }),
        "kubernetesNetworkConfig": Arg("KubernetesNetworkConfig", of={
            "ipFamily": Arg("IpFamily"), "serviceIpv4Cidr": Arg("ServiceIpv4Cidr"),
        }),
        "upgradePolicy": Arg("UpgradePolicy", of={"supportType": Arg("SupportType")}),
        "zonalShiftConfig": Arg("ZonalShiftConfig", of={"enabled": Arg("Enabled")}),
        **TAGS,
    }  # fmt: skip
    outputs = ("arn", "certificateAuthority", "createdAt", "endpoint", "identities", "platformVersion", "status")
    absent = ("clusterId",)
    nested_outputs: ClassVar = {"vpcConfig": ("clusterSecurityGroupId", "vpcId")}
    autoname = "name"
    longest_name = 100

    def create(self, aws: Aws, props: Props) -> str:
        encryption = props.get("encryptionConfig")
        aws("eks", "create_cluster", name=props["name"], roleArn=props["roleArn"], version=props.get("version"),
            resourcesVpcConfig=props["vpcConfig"], accessConfig=props.get("accessConfig"),
            bootstrapSelfManagedAddons=props.get("bootstrapSelfManagedAddons"),
            deletionProtection=props.get("deletionProtection"), logging=self._logging(props),
            encryptionConfig=[encryption] if encryption else None,
            kubernetesNetworkConfig=props.get("kubernetesNetworkConfig"), upgradePolicy=props.get("upgradePolicy"),
            zonalShiftConfig=props.get("zonalShiftConfig"), tags=aws.tags(props) or None)  # fmt: skip
        return str(props["name"])

    def _logging(self, props: Props) -> Props | None:
        types = props.get("enabledClusterLogTypes")
        return {"clusterLogging": [{"types": types, "enabled": True}]} if types else None

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        cluster = aws("eks", "describe_cluster", name=identity)["cluster"]
        vpc, network = cluster["resourcesVpcConfig"], cluster["kubernetesNetworkConfig"]
        logs = [t for g in cluster["logging"]["clusterLogging"] if g["enabled"] for t in g["types"]]
        state: Props = {
            "arn": cluster["arn"],
            "name": cluster["name"],
            "roleArn": cluster["roleArn"],
            "version": cluster["version"],
            "certificateAuthority": cluster["certificateAuthority"],
            "createdAt": time_text(cluster["createdAt"]),
            "endpoint": cluster["endpoint"],
            "identities": [{"oidcs": [cluster["identity"]["oidc"]]}],
            "platformVersion": cluster["platformVersion"],
            "status": cluster["status"],
            "accessConfig": {**props.get("accessConfig", {}), **cluster["accessConfig"]},
            "deletionProtection": cluster.get("deletionProtection", False),
            "enabledClusterLogTypes": logs,
            "kubernetesNetworkConfig": {k: network[k] for k in ("ipFamily", "serviceIpv4Cidr")},
            "upgradePolicy": cluster["upgradePolicy"],
            "tags": own(cluster.get("tags")),
            "vpcConfig": {k: vpc[k] for k in (*_VPC, "vpcId", "clusterSecurityGroupId") if k in vpc},
        }
        if encryption := cluster.get("encryptionConfig"):
            state["encryptionConfig"] = encryption[0]
        if zonal := cluster.get("zonalShiftConfig"):
            state["zonalShiftConfig"] = zonal
        return state

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        vpc = {k: v for k, v in new["vpcConfig"].items() if old.get("vpcConfig", {}).get(k) != v}
        for key, value in (
            ("resourcesVpcConfig", vpc or None),
            ("accessConfig", _only(new.get("accessConfig"), "authenticationMode")
             if changed(old, new, "accessConfig") else None),
            ("logging", self._logging_change(new) if changed(old, new, "enabledClusterLogTypes") else None),
            ("deletionProtection", new.get("deletionProtection", False)
             if changed(old, new, "deletionProtection") else None),
            ("upgradePolicy", new.get("upgradePolicy") if changed(old, new, "upgradePolicy") else None),
            ("zonalShiftConfig", new.get("zonalShiftConfig") if changed(old, new, "zonalShiftConfig") else None),
        ):  # fmt: skip
            if value is not None:
                aws("eks", "update_cluster_config", name=identity, **{key: value})
        if "version" in new and old.get("version") != new["version"]:
            aws("eks", "update_cluster_version", name=identity, version=new["version"])
        arn = aws("eks", "describe_cluster", name=identity)["cluster"]["arn"]
        retag(aws, arn, old, new)

    def _logging_change(self, new: Props) -> Props:
        on = new.get("enabledClusterLogTypes", [])
        off = [t for t in ("api", "audit", "authenticator", "controllerManager", "scheduler") if t not in on]
        groups = [{"types": t, "enabled": e} for t, e in ((on, True), (off, False)) if t]
        return {"clusterLogging": groups}

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("eks", "delete_cluster", name=identity)


def _only(block: Props | None, *names: str) -> Props | None:
    return {k: v for k, v in (block or {}).items() if k in names} or None


class NodeGroup(Resource):
    token = "aws:eks/nodeGroup:NodeGroup"
    cfn = "AWS::EKS::Nodegroup"
    args: ClassVar = {
        "clusterName": Arg("ClusterName", required=True),
        "nodeGroupName": Arg("NodegroupName"),
        "nodeRoleArn": Arg("NodeRole", required=True),
        "subnetIds": Arg("Subnets", required=True, unordered=True),
        "scalingConfig": Arg("ScalingConfig", required=True, of={
            "minSize": Arg("MinSize", required=True), "maxSize": Arg("MaxSize", required=True),
            "desiredSize": Arg("DesiredSize", required=True),
        }),
        "instanceTypes": Arg("InstanceTypes"),
        "amiType": Arg("AmiType"),
        "capacityType": Arg("CapacityType"),
        "diskSize": Arg("DiskSize"),
        "labels": Arg("Labels"),
        "taints": Arg("Taints", of={"key": Arg("Key"), "value": Arg("Value"), "effect": Arg("Effect")}),
        "updateConfig": Arg("UpdateConfig", of={
            "maxUnavailable": Arg("MaxUnavailable"), "maxUnavailablePercentage": Arg("MaxUnavailablePercentage"),
        }),
        "version": Arg("Version"),
        "releaseVersion": Arg("ReleaseVersion"),
        "launchTemplate": Arg("LaunchTemplate", of={"id": Arg("Id"), "version": Arg("Version", required=True)}),
        **TAGS,
    }  # fmt: skip
    outputs = ("arn", "resources", "status")
    autoname = "nodeGroupName"
    longest_name = 63

    def create(self, aws: Aws, props: Props) -> str:
        aws("eks", "create_nodegroup", clusterName=props["clusterName"], nodegroupName=props["nodeGroupName"],
            nodeRole=props["nodeRoleArn"], subnets=props["subnetIds"], scalingConfig=props["scalingConfig"],
            instanceTypes=props.get("instanceTypes"), amiType=props.get("amiType"),
            capacityType=props.get("capacityType"), diskSize=props.get("diskSize"), labels=props.get("labels"),
            taints=props.get("taints"), updateConfig=props.get("updateConfig"), version=props.get("version"),
            releaseVersion=props.get("releaseVersion"), launchTemplate=props.get("launchTemplate"),
            tags=aws.tags(props) or None)  # fmt: skip
        return f"{props['clusterName']}:{props['nodeGroupName']}"

    def _found(self, aws: Aws, identity: str) -> Props:
        cluster, name = identity.split(":", 1)
        found: Props = aws("eks", "describe_nodegroup", clusterName=cluster, nodegroupName=name)["nodegroup"]
        return found

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        group = self._found(aws, identity)
        same = ("scalingConfig", "instanceTypes", "amiType", "capacityType", "diskSize", "labels", "taints",
                "updateConfig", "version", "releaseVersion", "launchTemplate", "status", "clusterName")  # fmt: skip
        return {
            **{k: group[k] for k in same if k in group},
            "arn": group["nodegroupArn"],
            "nodeGroupName": group["nodegroupName"],
            "nodeRoleArn": group["nodeRole"],
            "subnetIds": group["subnets"],
            "resources": [{"autoscalingGroups": group["resources"]["autoScalingGroups"]}],
            "tags": own(group.get("tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        cluster, name = identity.split(":", 1)
        changes: Props = {k: new.get(k) for k in ("scalingConfig", "updateConfig") if changed(old, new, k)}
        if changed(old, new, "labels"):
            before, after = old.get("labels", {}), new.get("labels", {})
            changes["labels"] = {"addOrUpdateLabels": after, "removeLabels": sorted(set(before) - set(after))}
        if changed(old, new, "taints"):
            before, after = old.get("taints", []), new.get("taints", [])
            gone = [t for t in before if (t["key"], t["effect"]) not in {(a["key"], a["effect"]) for a in after}]
            changes["taints"] = {"addOrUpdateTaints": after, "removeTaints": gone}
        if changes:
            aws("eks", "update_nodegroup_config", clusterName=cluster, nodegroupName=name, **changes)
        if changed(old, new, "version", "releaseVersion", "launchTemplate"):
            aws("eks", "update_nodegroup_version", clusterName=cluster, nodegroupName=name,
                version=new.get("version"), releaseVersion=new.get("releaseVersion"),
                launchTemplate=new.get("launchTemplate"))  # fmt: skip
        retag(aws, self._found(aws, identity)["nodegroupArn"], old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        cluster, name = identity.split(":", 1)
        aws("eks", "delete_nodegroup", clusterName=cluster, nodegroupName=name)


TYPES: tuple[Resource, ...] = (Cluster(), NodeGroup())
