"""Roles, policies and instance profiles."""

from __future__ import annotations

import json
from typing import Any, ClassVar
from urllib.parse import unquote

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, as_list, as_map, half_made, tag_changes
from srvmod.local.providers.aws.client import Aws, Refused
from srvmod.local.providers.aws.eks_common import time_text
from srvmod.local.providers.values import Props


def document(value: Any) -> str:
    """A policy document as JSON text; IAM gives it out as an object or percent-encoded."""
    return json.dumps(value) if isinstance(value, dict) else unquote(str(value))


class Role(Resource):
    token = "aws:iam/role:Role"
    cfn = "AWS::IAM::Role"
    args: ClassVar = {
        "name": Arg("RoleName"),
        "path": Arg("Path"),
        "description": Arg("Description"),
        "assumeRolePolicy": Arg("AssumeRolePolicyDocument", required=True, document=True),
        "maxSessionDuration": Arg("MaxSessionDuration"),
        "permissionsBoundary": Arg("PermissionsBoundary"),
        "forceDetachPolicies": Arg(),
        **TAGS,
    }
    outputs = ("arn", "createDate", "uniqueId")
    absent = ("inlinePolicies", "managedPolicyArns")
    autoname = "name"
    longest_name = 64

    def create(self, aws: Aws, props: Props) -> str:
        aws("iam", "create_role", RoleName=props["name"], AssumeRolePolicyDocument=props["assumeRolePolicy"],
            Path=props.get("path"), Description=props.get("description"),
            MaxSessionDuration=props.get("maxSessionDuration"), PermissionsBoundary=props.get("permissionsBoundary"),
            Tags=as_list(aws.tags(props)) or None)  # fmt: skip
        return str(props["name"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        role = aws("iam", "get_role", RoleName=identity)["Role"]
        state = {
            "arn": role["Arn"],
            "createDate": role["CreateDate"].strftime("%Y-%m-%dT%H:%M:%SZ"),
            "uniqueId": role["RoleId"],
            "name": role["RoleName"],
            "path": role["Path"],
            "maxSessionDuration": role["MaxSessionDuration"],
            "assumeRolePolicy": document(role["AssumeRolePolicyDocument"]),
            "tags": as_map(role.get("Tags")),
        }
        if role.get("Description"):
            state["description"] = role["Description"]
        if boundary := role.get("PermissionsBoundary", {}).get("PermissionsBoundaryArn"):
            state["permissionsBoundary"] = boundary
        return state

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        if old.get("assumeRolePolicy") != new["assumeRolePolicy"]:
            aws("iam", "update_assume_role_policy", RoleName=identity, PolicyDocument=new["assumeRolePolicy"])
        if any(old.get(k) != new.get(k) for k in ("description", "maxSessionDuration")):
            aws("iam", "update_role", RoleName=identity, Description=new.get("description", ""),
                MaxSessionDuration=new.get("maxSessionDuration", 3600))  # fmt: skip
        if old.get("permissionsBoundary") != new.get("permissionsBoundary"):
            if boundary := new.get("permissionsBoundary"):
                aws("iam", "put_role_permissions_boundary", RoleName=identity, PermissionsBoundary=boundary)
            else:
                aws("iam", "delete_role_permissions_boundary", RoleName=identity)
        put, gone = tag_changes(aws, old, new)
        if put:
            aws("iam", "tag_role", RoleName=identity, Tags=as_list(put))
        if gone:
            aws("iam", "untag_role", RoleName=identity, TagKeys=gone)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        for profile in aws("iam", "list_instance_profiles_for_role", RoleName=identity)["InstanceProfiles"]:
            name = profile["InstanceProfileName"]
            aws("iam", "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=identity)
        if props.get("forceDetachPolicies"):
            for policy in aws("iam", "list_attached_role_policies", RoleName=identity)["AttachedPolicies"]:
                aws("iam", "detach_role_policy", RoleName=identity, PolicyArn=policy["PolicyArn"])
        aws("iam", "delete_role", RoleName=identity)


class Policy(Resource):
    token = "aws:iam/policy:Policy"
    cfn = "AWS::IAM::ManagedPolicy"
    args: ClassVar = {
        "name": Arg("ManagedPolicyName"),
        "path": Arg("Path"),
        "description": Arg("Description"),
        "policy": Arg("PolicyDocument", required=True, document=True),
        "tags": Arg(),  # AWS has them, the schema hasn't
    }
    outputs = ("arn", "attachmentCount", "policyId")
    autoname = "name"
    longest_name = 128

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("iam", "create_policy", PolicyName=props["name"], PolicyDocument=props["policy"],
                   Path=props.get("path"), Description=props.get("description"),
                   Tags=as_list(aws.tags(props)) or None)  # fmt: skip
        return str(made["Policy"]["Arn"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        policy = aws("iam", "get_policy", PolicyArn=identity)["Policy"]
        version = aws("iam", "get_policy_version", PolicyArn=identity, VersionId=policy["DefaultVersionId"])
        return {
            "arn": identity,
            "attachmentCount": policy["AttachmentCount"],
            "policyId": policy["PolicyId"],
            "name": policy["PolicyName"],
            "path": policy["Path"],
            "policy": document(version["PolicyVersion"]["Document"]),
            "tags": as_map(policy.get("Tags")),
            **({"description": policy["Description"]} if policy.get("Description") else {}),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        if old.get("policy") != new["policy"]:
            versions = aws("iam", "list_policy_versions", PolicyArn=identity)["Versions"]
            spare = [v["VersionId"] for v in versions if not v["IsDefaultVersion"]]
            if len(versions) >= 5:
                aws("iam", "delete_policy_version", PolicyArn=identity, VersionId=min(spare, key=_number))
            aws("iam", "create_policy_version", PolicyArn=identity, PolicyDocument=new["policy"], SetAsDefault=True)
        put, gone = tag_changes(aws, old, new)
        if put:
            aws("iam", "tag_policy", PolicyArn=identity, Tags=as_list(put))
        if gone:
            aws("iam", "untag_policy", PolicyArn=identity, TagKeys=gone)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        for version in aws("iam", "list_policy_versions", PolicyArn=identity)["Versions"]:
            if not version["IsDefaultVersion"]:
                aws("iam", "delete_policy_version", PolicyArn=identity, VersionId=version["VersionId"])
        aws("iam", "delete_policy", PolicyArn=identity)


def _number(version: str) -> int:
    return int(version.removeprefix("v"))


class RolePolicyAttachment(Resource):
    token = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
    cfn = "AWS::IAM::Role"  # attachments have no type of their own
    args: ClassVar = {"role": Arg(required=True, identity=True), "policyArn": Arg(required=True, identity=True)}

    def create(self, aws: Aws, props: Props) -> str:
        aws("iam", "attach_role_policy", RoleName=props["role"], PolicyArn=props["policyArn"])
        return f"{props['role']}/{props['policyArn']}"

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        role, arn = identity.split("/", 1)
        attached = aws("iam", "list_attached_role_policies", RoleName=role)["AttachedPolicies"]
        return {"role": role, "policyArn": arn} if any(p["PolicyArn"] == arn for p in attached) else None

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        role, arn = identity.split("/", 1)
        aws("iam", "detach_role_policy", RoleName=role, PolicyArn=arn)


class RolePolicy(Resource):
    token = "aws:iam/rolePolicy:RolePolicy"
    cfn = "AWS::IAM::RolePolicy"
    args: ClassVar = {
        "name": Arg("PolicyName"),
        "role": Arg("RoleName", required=True),
        "policy": Arg("PolicyDocument", required=True, document=True),
    }
    autoname = "name"
    longest_name = 128

    def create(self, aws: Aws, props: Props) -> str:
        self.update(aws, "", {}, props)
        return f"{props['role']}:{props['name']}"

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        role, name = identity.split(":", 1)
        try:
            found = aws("iam", "get_role_policy", RoleName=role, PolicyName=name)
        except Refused as error:
            if error.missing:
                return None
            raise
        return {"role": role, "name": name, "policy": document(found["PolicyDocument"])}

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        aws("iam", "put_role_policy", RoleName=new["role"], PolicyName=new["name"], PolicyDocument=new["policy"])

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        role, name = identity.split(":", 1)
        aws("iam", "delete_role_policy", RoleName=role, PolicyName=name)


class InstanceProfile(Resource):
    token = "aws:iam/instanceProfile:InstanceProfile"
    cfn = "AWS::IAM::InstanceProfile"
    args: ClassVar = {
        "name": Arg("InstanceProfileName"),
        "role": Arg("Roles"),
        "tags": Arg(),  # CloudFormation has none
    }
    outputs = ("arn", "createDate", "uniqueId")
    absent = ("namePrefix",)
    autoname = "name"
    longest_name = 128

    def create(self, aws: Aws, props: Props) -> str:
        aws("iam", "create_instance_profile", InstanceProfileName=props["name"], Tags=as_list(aws.tags(props)))
        with half_made(props["name"]):
            self._hold(aws, props["name"], None, props.get("role"))
        return str(props["name"])

    def _hold(self, aws: Aws, name: str, old: str | None, new: str | None) -> None:
        if old and old != new:
            aws("iam", "remove_role_from_instance_profile", InstanceProfileName=name, RoleName=old)
        if new and old != new:
            aws("iam", "add_role_to_instance_profile", InstanceProfileName=name, RoleName=new)

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = aws("iam", "get_instance_profile", InstanceProfileName=identity)["InstanceProfile"]
        state: Props = {
            "arn": found["Arn"],
            "createDate": time_text(found["CreateDate"]),
            "uniqueId": found["InstanceProfileId"],
            "name": identity,
            "tags": as_map(found.get("Tags")),
        }
        return state | ({"role": found["Roles"][0]["RoleName"]} if found["Roles"] else {})

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        self._hold(aws, identity, old.get("role"), new.get("role"))
        put, gone = tag_changes(aws, old, new)
        if put:
            aws("iam", "tag_instance_profile", InstanceProfileName=identity, Tags=as_list(put))
        if gone:
            aws("iam", "untag_instance_profile", InstanceProfileName=identity, TagKeys=gone)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        self._hold(aws, identity, props.get("role"), None)
        aws("iam", "delete_instance_profile", InstanceProfileName=identity)


TYPES: tuple[Resource, ...] = (Role(), Policy(), RolePolicyAttachment(), RolePolicy(), InstanceProfile())
