"""Security groups and their rules."""

from __future__ import annotations

from typing import Any, ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, as_map, half_made
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.values import Props

from .ec2_common import arn, one, retag, specification

_DESCRIPTION = "Managed by Pulumi"


class SecurityGroup(Resource):
    token = "aws:ec2/securityGroup:SecurityGroup"
    cfn = "AWS::EC2::SecurityGroup"
    args: ClassVar = {
        "name": Arg("GroupName"),
        "description": Arg("GroupDescription"),
        "vpcId": Arg("VpcId"),
        "revokeRulesOnDelete": Arg(),
        **TAGS,
    }
    outputs = ("arn", "ownerId")
    absent = ("egress", "ingress")
    autoname = "name"

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("ec2", "create_security_group", GroupName=props["name"], VpcId=props.get("vpcId"),
                   Description=props.get("description", _DESCRIPTION),
                   TagSpecifications=specification(aws, "security-group", props))  # fmt: skip
        identity: str = made["GroupId"]
        # as Terraform's provider, and so the real one: no rule that lets everything out unless it is declared
        everything: Any = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
        with half_made(identity):
            aws("ec2", "revoke_security_group_egress", GroupId=identity, IpPermissions=everything)
        return identity

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        group = one(aws, "describe_security_groups", "SecurityGroups", GroupIds=[identity])
        return group and {
            "arn": arn(aws, "security-group", identity),
            "ownerId": group["OwnerId"],
            "name": group["GroupName"],
            "description": group["Description"],
            "vpcId": group["VpcId"],
            "tags": as_map(group.get("Tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "delete_security_group", GroupId=identity)


class DefaultSecurityGroup(Resource):
    """The group that every VPC has: taken over with all its rules removed, and left behind."""

    token = "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup"
    cfn = "AWS::EC2::SecurityGroup"
    args: ClassVar = {"vpcId": Arg("VpcId", required=True), **TAGS}
    outputs = ("arn", "name", "description", "ownerId")
    absent = ("namePrefix", "egress", "ingress", "revokeRulesOnDelete")

    def create(self, aws: Aws, props: Props) -> str:
        filters: Any = [{"Name": "vpc-id", "Values": [props["vpcId"]]}, {"Name": "group-name", "Values": ["default"]}]
        group = one(aws, "describe_security_groups", "SecurityGroups", Filters=filters)
        if group is None:
            raise ValueError(f"{props['vpcId']} has no default security group")
        identity = str(group["GroupId"])
        if rules := group.get("IpPermissions"):
            aws("ec2", "revoke_security_group_ingress", GroupId=identity, IpPermissions=rules)
        if rules := group.get("IpPermissionsEgress"):
            aws("ec2", "revoke_security_group_egress", GroupId=identity, IpPermissions=rules)
        retag(aws, identity, {}, props)
        return identity

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        return SecurityGroup().read(aws, identity, props)

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        """It goes with its VPC."""


_RULE = {
    "ipProtocol": "IpProtocol",
    "fromPort": "FromPort",
    "toPort": "ToPort",
    "cidrIpv4": "CidrIpv4",
    "cidrIpv6": "CidrIpv6",
    "description": "Description",
}


class _Rule(Resource):
    """A rule by its own id. What it allows is fixed; AWS's schemas say that only the description may change."""

    direction: ClassVar[str]
    other: ClassVar[str]
    outputs = ("arn", "securityGroupRuleId")

    def create(self, aws: Aws, props: Props) -> str:
        permission: Props = {"IpProtocol": props["ipProtocol"]}
        for name, argument in (("fromPort", "FromPort"), ("toPort", "ToPort")):
            if name in props:
                permission[argument] = props[name]
        told = {"Description": props["description"]} if "description" in props else {}
        if "cidrIpv4" in props:
            permission["IpRanges"] = [{"CidrIp": props["cidrIpv4"], **told}]
        if "cidrIpv6" in props:
            permission["Ipv6Ranges"] = [{"CidrIpv6": props["cidrIpv6"], **told}]
        if "referencedSecurityGroupId" in props:
            permission["UserIdGroupPairs"] = [{"GroupId": props["referencedSecurityGroupId"], **told}]
        made = aws("ec2", f"authorize_security_group_{self.direction}", GroupId=props["securityGroupId"],
                   IpPermissions=[permission],
                   TagSpecifications=specification(aws, "security-group-rule", props))  # fmt: skip
        return str(made["SecurityGroupRules"][0]["SecurityGroupRuleId"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        where = [{"Name": "security-group-rule-id", "Values": [identity]}]
        if "securityGroupId" in props:
            where = [{"Name": "group-id", "Values": [props["securityGroupId"]]}]
        rules = aws("ec2", "describe_security_group_rules", Filters=where)["SecurityGroupRules"]
        rule = next((r for r in rules if r["SecurityGroupRuleId"] == identity), None)
        if rule is None:
            return None
        state = {name: rule[key] for name, key in _RULE.items() if rule.get(key) is not None}
        state["securityGroupId"] = rule["GroupId"]
        if referenced := rule.get("ReferencedGroupInfo", {}).get("GroupId"):
            state["referencedSecurityGroupId"] = referenced
        return {**state, "arn": arn(aws, "security-group-rule", identity), "securityGroupRuleId": identity,
                "tags": as_map(rule.get("Tags"))}  # fmt: skip

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        if old.get("description") != new.get("description"):
            kept = {argument: new[name] for name, argument in _RULE.items() if name in new}
            if "referencedSecurityGroupId" in new:
                kept["ReferencedGroupId"] = new["referencedSecurityGroupId"]
            rule = {"SecurityGroupRuleId": identity, "SecurityGroupRule": {"Description": "", **kept}}
            aws("ec2", "modify_security_group_rules", GroupId=new["securityGroupId"], SecurityGroupRules=[rule])
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", f"revoke_security_group_{self.direction}", GroupId=props["securityGroupId"],
            SecurityGroupRuleIds=[identity])  # fmt: skip


def _rule_args(other: str) -> dict[str, Arg]:
    return {
        "securityGroupId": Arg("GroupId", required=True),
        "ipProtocol": Arg("IpProtocol", required=True),
        "fromPort": Arg("FromPort"),
        "toPort": Arg("ToPort"),
        "cidrIpv4": Arg("CidrIp"),
        "cidrIpv6": Arg("CidrIpv6"),
        "referencedSecurityGroupId": Arg(other),
        "description": Arg("Description"),
        "tags": Arg(),  # AWS has them, the schema hasn't
    }


class IngressRule(_Rule):
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    cfn = "AWS::EC2::SecurityGroupIngress"
    direction = "ingress"
    args: ClassVar = _rule_args("SourceSecurityGroupId")


class EgressRule(_Rule):
    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    cfn = "AWS::EC2::SecurityGroupEgress"
    direction = "egress"
    args: ClassVar = _rule_args("DestinationSecurityGroupId")


TYPES: tuple[Resource, ...] = (SecurityGroup(), DefaultSecurityGroup(), IngressRule(), EgressRule())
