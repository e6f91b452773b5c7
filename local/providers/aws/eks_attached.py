"""EKS: add-ons, access entries and policies, pod identity associations."""

from __future__ import annotations

from typing import ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource
from srvmod.local.providers.aws.client import Aws, Refused
from srvmod.local.providers.aws.eks_common import changed, own, retag, time_text
from srvmod.local.providers.values import Props


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
            "createdAt": time_text(addon["createdAt"]),
            "modifiedAt": time_text(addon["modifiedAt"]),
            "tags": own(addon.get("tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        cluster, name = identity.split(":", 1)
        if changed(old, new, "addonVersion", "configurationValues", "serviceAccountRoleArn"):
            aws("eks", "update_addon", clusterName=cluster, addonName=name, addonVersion=new.get("addonVersion"),
                configurationValues=new.get("configurationValues"),
                serviceAccountRoleArn=new.get("serviceAccountRoleArn"),
                resolveConflicts=new.get("resolveConflictsOnUpdate"))  # fmt: skip
        retag(aws, self._found(aws, identity)["addonArn"], old, new)

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
            "createdAt": time_text(entry["createdAt"]),
            "modifiedAt": time_text(entry["modifiedAt"]),
            "tags": own(entry.get("tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        cluster, principal = identity.split(":", 1)
        where = {"clusterName": cluster, "principalArn": principal}
        if changed(old, new, "kubernetesGroups", "userName"):
            aws("eks", "update_access_entry", **where, kubernetesGroups=new.get("kubernetesGroups"),
                username=new.get("userName"))  # fmt: skip
        retag(aws, aws("eks", "describe_access_entry", **where)["accessEntry"]["accessEntryArn"], old, new)

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
                        "associatedAt": time_text(entry["associatedAt"]),
                        "modifiedAt": time_text(entry["modifiedAt"])}  # fmt: skip
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
        return {**{k: found[k] for k in same}, "tags": own(found.get("tags"))}

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        where = {"clusterName": new["clusterName"], "associationId": identity}
        if changed(old, new, "roleArn", "disableSessionTags"):
            aws("eks", "update_pod_identity_association", **where, roleArn=new["roleArn"],
                disableSessionTags=new.get("disableSessionTags"))  # fmt: skip
        arn = aws("eks", "describe_pod_identity_association", **where)["association"]["associationArn"]
        retag(aws, arn, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("eks", "delete_pod_identity_association", clusterName=props["clusterName"], associationId=identity)


TYPES: tuple[Resource, ...] = (Addon(), AccessEntry(), AccessPolicyAssociation(), PodIdentityAssociation())
