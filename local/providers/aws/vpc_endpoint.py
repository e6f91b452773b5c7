"""Endpoints: private ways from a VPC to AWS services."""

from __future__ import annotations

import json
from typing import ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, as_map
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.values import Props

from .ec2_common import arn, one, retag, specification

_LISTS = {
    "subnetIds": ("AddSubnetIds", "RemoveSubnetIds"),
    "securityGroupIds": ("AddSecurityGroupIds", "RemoveSecurityGroupIds"),
    "routeTableIds": ("AddRouteTableIds", "RemoveRouteTableIds"),
}


class VpcEndpoint(Resource):
    token = "aws:ec2/vpcEndpoint:VpcEndpoint"
    cfn = "AWS::EC2::VPCEndpoint"
    args: ClassVar = {
        "vpcId": Arg("VpcId", required=True),
        "serviceName": Arg("ServiceName", required=True),
        "vpcEndpointType": Arg("VpcEndpointType"),
        "subnetIds": Arg("SubnetIds", unordered=True),
        "securityGroupIds": Arg("SecurityGroupIds", unordered=True),
        "routeTableIds": Arg("RouteTableIds", unordered=True),
        "privateDnsEnabled": Arg("PrivateDnsEnabled"),
        "policy": Arg("PolicyDocument", document=True),
        **TAGS,
    }
    outputs = ("arn", "ownerId", "state", "dnsEntries", "networkInterfaceIds", "requesterManaged")
    absent = ("cidrBlocks", "prefixListId")

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("ec2", "create_vpc_endpoint", VpcId=props["vpcId"], ServiceName=props["serviceName"],
                   VpcEndpointType=props.get("vpcEndpointType"), SubnetIds=props.get("subnetIds"),
                   SecurityGroupIds=props.get("securityGroupIds"), RouteTableIds=props.get("routeTableIds"),
                   PrivateDnsEnabled=props.get("privateDnsEnabled"), PolicyDocument=props.get("policy"),
                   TagSpecifications=specification(aws, "vpc-endpoint", props))  # fmt: skip
        return str(made["VpcEndpoint"]["VpcEndpointId"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = one(aws, "describe_vpc_endpoints", "VpcEndpoints", VpcEndpointIds=[identity])
        if found is None or found["State"].lower() == "deleted":
            return None
        entries = [{"dnsName": d.get("DnsName", ""), "hostedZoneId": d.get("HostedZoneId", "")}
                   for d in found.get("DnsEntries", [])]  # fmt: skip
        policy = found.get("PolicyDocument")
        return {
            "arn": arn(aws, "vpc-endpoint", identity),
            "ownerId": found.get("OwnerId", aws.account),
            "state": found["State"],
            "dnsEntries": entries,
            "networkInterfaceIds": found.get("NetworkInterfaceIds", []),
            "requesterManaged": found.get("RequesterManaged", False),
            "vpcId": found["VpcId"],
            "serviceName": found["ServiceName"],
            "vpcEndpointType": found["VpcEndpointType"],
            "privateDnsEnabled": found.get("PrivateDnsEnabled", False),
            "subnetIds": found.get("SubnetIds", []),
            "securityGroupIds": [g["GroupId"] if isinstance(g, dict) else g for g in found.get("Groups", [])],
            "routeTableIds": found.get("RouteTableIds", []),
            "tags": as_map(found.get("Tags")),
            **({"policy": policy if isinstance(policy, str) else json.dumps(policy)} if policy else {}),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        changes: Props = {}
        for name, (add, remove) in _LISTS.items():
            before, after = set(old.get(name, [])), set(new.get(name, []))
            changes |= {add: sorted(after - before) or None, remove: sorted(before - after) or None}
        for name, argument in (("privateDnsEnabled", "PrivateDnsEnabled"), ("policy", "PolicyDocument")):
            if name in new and old.get(name) != new[name]:
                changes[argument] = new[name]
        if any(v is not None for v in changes.values()):
            aws("ec2", "modify_vpc_endpoint", VpcEndpointId=identity, **changes)
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "delete_vpc_endpoints", VpcEndpointIds=[identity])


TYPES: tuple[Resource, ...] = (VpcEndpoint(),)
