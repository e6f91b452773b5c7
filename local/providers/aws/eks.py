"""EKS: cluster, node group, add-on, access entry and policy, pod identity association."""

from __future__ import annotations

from typing import Any, ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, tag_changes
from srvmod.local.providers.aws.client import Aws, Refused
from srvmod.local.providers.values import Props


def _retag(aws: Aws, arn: str, old: Props, new: Props) -> None:
    put, gone = tag_changes(aws, old, new)
    if put:
        aws("eks", "tag_resource", resourceArn=arn, tags=put)
    if gone:
        aws("eks", "untag_resource", resourceArn=arn, tagKeys=gone)


def _own(tags: dict[str, str] | None) -> dict[str, str]:
    return {k: v for k, v in (tags or {}).items() if not k.startswith("aws:")}


def _time(value: Any) -> str:
    return str(value.strftime("%Y-%m-%dT%H:%M:%SZ"))


def _changed(old: Props, new: Props, *names: str) -> bool:
    return any(old.get(n) != new.get(n) for n in names)


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
            "createdAt": _time(cluster["createdAt"]),
            "endpoint": cluster["endpoint"],
            "identities": [{"oidcs": [cluster["identity"]["oidc"]]}],
            "platformVersion": cluster["platformVersion"],
            "status": cluster["status"],
            "accessConfig": {**props.get("accessConfig", {}), **cluster["accessConfig"]},
            "deletionProtection": cluster.get("deletionProtection", False),
            "enabledClusterLogTypes": logs,
            "kubernetesNetworkConfig": {k: network[k] for k in ("ipFamily", "serviceIpv4Cidr")},
            "upgradePolicy": cluster["upgradePolicy"],
            "tags": _own(cluster.get("tags")),
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
             if _changed(old, new, "accessConfig") else None),
            ("logging", self._logging_change(new) if _changed(old, new, "enabledClusterLogTypes") else None),
            ("deletionProtection", new.get("deletionProtection", False)
             if _changed(old, new, "deletionProtection") else None),
            ("upgradePolicy", new.get("upgradePolicy") if _changed(old, new, "upgradePolicy") else None),
            ("zonalShiftConfig", new.get("zonalShiftConfig") if _changed(old, new, "zonalShiftConfig") else None),
        ):  # fmt: skip
            if value is not None:
                aws("eks", "update_cluster_config", name=identity, **{key: value})
        if "version" in new and old.get("version") != new["version"]:
            aws("eks", "update_cluster_version", name=identity, version=new["version"])
        arn = aws("eks", "describe_cluster", name=identity)["cluster"]["arn"]
        _retag(aws, arn, old, new)

    def _logging_change(self, new: Props) -> Props:
        on = new.get("enabledClusterLogTypes", [])
        off = [t for t in ("api", "audit", "authenticator", "controllerManager", "scheduler") if t not in on]
        groups = [{"types": t, "enabled": e} for t, e in ((on, True), (off, False)) if t]
        return {"clusterLogging": groups}

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("eks", "delete_cluster", name=identity)


def _only(block: Props | None, *names: str) -> Props | None:
    return {k: v for k, v in (block or {}).items() if k in names} or None


_EFFECTS = {"NO_SCHEDULE", "NO_EXECUTE", "PREFER_NO_SCHEDULE"}


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
            releaseVersion=props.get("releaseVersion"), tags=aws.tags(props) or None)  # fmt: skip
        return f"{props['clusterName']}:{props['nodeGroupName']}"

    def _found(self, aws: Aws, identity: str) -> Props:
        cluster, name = identity.split(":", 1)
        found: Props = aws("eks", "describe_nodegroup", clusterName=cluster, nodegroupName=name)["nodegroup"]
        return found

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        group = self._found(aws, identity)
        same = ("scalingConfig", "instanceTypes", "amiType", "capacityType", "diskSize", "labels", "taints",
                "updateConfig", "version", "releaseVersion", "status", "clusterName")  # fmt: skip
        return {
            **{k: group[k] for k in same if k in group},
            "arn": group["nodegroupArn"],
            "nodeGroupName": group["nodegroupName"],
            "nodeRoleArn": group["nodeRole"],
            "subnetIds": group["subnets"],
            "resources": [{"autoscalingGroups": group["resources"]["autoScalingGroups"]}],
            "tags": _own(group.get("tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        cluster, name = identity.split(":", 1)
        changes: Props = {k: new.get(k) for k in ("scalingConfig", "updateConfig") if _changed(old, new, k)}
        if _changed(old, new, "labels"):
            before, after = old.get("labels", {}), new.get("labels", {})
            changes["labels"] = {"addOrUpdateLabels": after, "removeLabels": sorted(set(before) - set(after))}
        if _changed(old, new, "taints"):
            before, after = old.get("taints", []), new.get("taints", [])
            gone = [t for t in before if (t["key"], t["effect"]) not in {(a["key"], a["effect"]) for a in after}]
            changes["taints"] = {"addOrUpdateTaints": after, "removeTaints": gone}
        if changes:
            aws("eks", "update_nodegroup_config", clusterName=cluster, nodegroupName=name, **changes)
        if _changed(old, new, "version", "releaseVersion"):
            aws("eks", "update_nodegroup_version", clusterName=cluster, nodegroupName=name,
                version=new.get("version"), releaseVersion=new.get("releaseVersion"))  # fmt: skip
        _retag(aws, self._found(aws, identity)["nodegroupArn"], old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        cluster, name = identity.split(":", 1)
        aws("eks", "delete_nodegroup", clusterName=cluster, nodegroupName=name)


class Addon(Resource):
    token = "aws:eks/addon:Addon"
    cfn = "AWS::EKS::Addon"
    args: ClassVar = {
        "clusterName": Arg("ClusterName", required=True),
        "addonName": Arg("AddonName", required=True),
        "addonVersion": Arg("AddonVersion"),
        "configurationValues": Arg("ConfigurationValues", document=True),
        "resolveConflictsOnCreate": Arg("ResolveConflicts"),
        "resolveConflictsOnUpdate": Arg("ResolveConflicts"),
        "serviceAccountRoleArn": Arg("ServiceAccountRoleArn"),
        "preserve": Arg("PreserveOnDelete"),
        **TAGS,
    }
    outputs = ("arn", "createdAt", "modifiedAt")

    def create(self, aws: Aws, props: Props) -> str:
        aws("eks", "create_addon", clusterName=props["clusterName"], addonName=props["addonName"],
            addonVersion=props.get("addonVersion"), configurationValues=props.get("configurationValues"),
            resolveConflicts=props.get("resolveConflictsOnCreate"),
            serviceAccountRoleArn=props.get("serviceAccountRoleArn"), tags=aws.tags(props) or None)  # fmt: skip
        return f"{props['clusterName']}:{props['addonName']}"

    def _found(self, aws: Aws, identity: str) -> Props:
        cluster, name = identity.split(":", 1)
        found: Props = aws("eks", "describe_addon", clusterName=cluster, addonName=name)["addon"]
        return found

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        addon = self._found(aws, identity)
        same = ("clusterName", "addonName", "addonVersion", "configurationValues", "serviceAccountRoleArn")
        return {
            **{k: addon[k] for k in same if k in addon},
            "arn": addon["addonArn"],
            "createdAt": _time(addon["createdAt"]),
            "modifiedAt": _time(addon["modifiedAt"]),
            "tags": _own(addon.get("tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        cluster, name = identity.split(":", 1)
        if _changed(old, new, "addonVersion", "configurationValues", "serviceAccountRoleArn"):
            aws("eks", "update_addon", clusterName=cluster, addonName=name, addonVersion=new.get("addonVersion"),
                configurationValues=new.get("configurationValues"),
                serviceAccountRoleArn=new.get("serviceAccountRoleArn"),
                resolveConflicts=new.get("resolveConflictsOnUpdate"))  # fmt: skip
        _retag(aws, self._found(aws, identity)["addonArn"], old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        cluster, name = identity.split(":", 1)
        aws("eks", "delete_addon", clusterName=cluster, addonName=name, preserve=props.get("preserve"))


class AccessEntry(Resource):
    token = "aws:eks/accessEntry:AccessEntry"
    cfn = "AWS::EKS::AccessEntry"
    args: ClassVar = {
        "clusterName": Arg("ClusterName", required=True),
        "principalArn": Arg("PrincipalArn", required=True),
        "type": Arg("Type"),
        "kubernetesGroups": Arg("KubernetesGroups", unordered=True),
        "userName": Arg("Username"),
        **TAGS,
    }
    outputs = ("accessEntryArn", "createdAt", "modifiedAt")

    def create(self, aws: Aws, props: Props) -> str:
        aws("eks", "create_access_entry", clusterName=props["clusterName"], principalArn=props["principalArn"],
            type=props.get("type"), kubernetesGroups=props.get("kubernetesGroups"), username=props.get("userName"),
            tags=aws.tags(props) or None)  # fmt: skip
        return f"{props['clusterName']}:{props['principalArn']}"

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        cluster, principal = identity.split(":", 1)
        entry = aws("eks", "describe_access_entry", clusterName=cluster, principalArn=principal)["accessEntry"]
        return {
            "clusterName": cluster,
            "principalArn": principal,
            "type": entry["type"],
            "kubernetesGroups": entry["kubernetesGroups"],
            "userName": entry["username"],
            "accessEntryArn": entry["accessEntryArn"],
            "createdAt": _time(entry["createdAt"]),
            "modifiedAt": _time(entry["modifiedAt"]),
            "tags": _own(entry.get("tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        cluster, principal = identity.split(":", 1)
        where = {"clusterName": cluster, "principalArn": principal}
        if _changed(old, new, "kubernetesGroups", "userName"):
            aws("eks", "update_access_entry", **where, kubernetesGroups=new.get("kubernetesGroups"),
                username=new.get("userName"))  # fmt: skip
        _retag(aws, aws("eks", "describe_access_entry", **where)["accessEntry"]["accessEntryArn"], old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        cluster, principal = identity.split(":", 1)
        aws("eks", "delete_access_entry", clusterName=cluster, principalArn=principal)


class AccessPolicyAssociation(Resource):
    token = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    cfn = "AWS::EKS::AccessEntry"
    args: ClassVar = {
        "clusterName": Arg("ClusterName", required=True),
        "principalArn": Arg("PrincipalArn", required=True),
        "policyArn": Arg("AccessPolicies/PolicyArn", required=True, identity=True),
        "accessScope": Arg("AccessPolicies/AccessScope", required=True, of={
            "type": Arg("Type", required=True), "namespaces": Arg("Namespaces", unordered=True),
        }),
    }  # fmt: skip
    outputs = ("associatedAt", "modifiedAt")

    def create(self, aws: Aws, props: Props) -> str:
        self.update(aws, "", {}, props)
        return "#".join(props[k] for k in ("clusterName", "principalArn", "policyArn"))

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        cluster, principal, policy = identity.split("#")
        found = aws("eks", "list_associated_access_policies", clusterName=cluster, principalArn=principal)
        for entry in found["associatedAccessPolicies"]:
            if entry["policyArn"] == policy:
                scope = {k: v for k, v in entry["accessScope"].items() if v}
                return {"clusterName": cluster, "principalArn": principal, "policyArn": policy, "accessScope": scope,
                        "associatedAt": _time(entry["associatedAt"]),
                        "modifiedAt": _time(entry["modifiedAt"])}  # fmt: skip
        return None

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        aws("eks", "associate_access_policy", clusterName=new["clusterName"], principalArn=new["principalArn"],
            policyArn=new["policyArn"], accessScope=new["accessScope"])  # fmt: skip

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        cluster, principal, policy = identity.split("#")
        aws("eks", "disassociate_access_policy", clusterName=cluster, principalArn=principal, policyArn=policy)


class PodIdentityAssociation(Resource):
    token = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    cfn = "AWS::EKS::PodIdentityAssociation"
    args: ClassVar = {
        "clusterName": Arg("ClusterName", required=True),
        "namespace": Arg("Namespace", required=True),
        "serviceAccount": Arg("ServiceAccount", required=True),
        "roleArn": Arg("RoleArn", required=True),
        "disableSessionTags": Arg("DisableSessionTags"),
        **TAGS,
    }
    outputs = ("associationArn", "associationId")
    absent = ("externalId",)

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("eks", "create_pod_identity_association", clusterName=props["clusterName"],
                   namespace=props["namespace"], serviceAccount=props["serviceAccount"], roleArn=props["roleArn"],
                   disableSessionTags=props.get("disableSessionTags"), tags=aws.tags(props) or None)  # fmt: skip
        return str(made["association"]["associationId"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        try:
            found = aws("eks", "describe_pod_identity_association", clusterName=props["clusterName"],
                        associationId=identity)["association"]  # fmt: skip
        except Refused as error:
            if error.missing:
                return None
            raise
        same = ("clusterName", "namespace", "serviceAccount", "roleArn", "disableSessionTags", "associationArn",
                "associationId")  # fmt: skip
        return {**{k: found[k] for k in same}, "tags": _own(found.get("tags"))}

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        where = {"clusterName": new["clusterName"], "associationId": identity}
        if _changed(old, new, "roleArn", "disableSessionTags"):
            aws("eks", "update_pod_identity_association", **where, roleArn=new["roleArn"],
                disableSessionTags=new.get("disableSessionTags"))  # fmt: skip
        arn = aws("eks", "describe_pod_identity_association", **where)["association"]["associationArn"]
        _retag(aws, arn, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("eks", "delete_pod_identity_association", clusterName=props["clusterName"], associationId=identity)


TYPES: tuple[Resource, ...] = (
    Cluster(), NodeGroup(), Addon(), AccessEntry(), AccessPolicyAssociation(), PodIdentityAssociation(),
)  # fmt: skip
