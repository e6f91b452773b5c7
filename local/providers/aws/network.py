"""VPC, subnet, gateways, addresses."""

from __future__ import annotations

from typing import ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, as_map, half_made
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.values import Props

from .ec2_common import arn, one, retag, specification

_SWITCHES = {"enableDnsHostnames": "EnableDnsHostnames", "enableDnsSupport": "EnableDnsSupport"}


class Vpc(Resource):
    token = "aws:ec2/vpc:Vpc"
    cfn = "AWS::EC2::VPC"
    args: ClassVar = {
        "cidrBlock": Arg("CidrBlock", required=True),
        "enableDnsHostnames": Arg("EnableDnsHostnames"),
        "enableDnsSupport": Arg("EnableDnsSupport"),
        **TAGS,
    }
    outputs = ("arn", "ownerId", "defaultNetworkAclId", "defaultRouteTableId", "defaultSecurityGroupId",
               "dhcpOptionsId", "mainRouteTableId", "instanceTenancy")  # fmt: skip
    absent = ("ipv6AssociationId",)

    def create(self, aws: Aws, props: Props) -> str:
        tags = specification(aws, "vpc", props)
        made = aws("ec2", "create_vpc", CidrBlock=props["cidrBlock"], TagSpecifications=tags)["Vpc"]
        identity: str = made["VpcId"]
        with half_made(identity):
            self._switch(aws, identity, {}, props)
        return identity

    def _switch(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        for name, attribute in _SWITCHES.items():
            if name in new and old.get(name) != new[name]:
                aws("ec2", "modify_vpc_attribute", VpcId=identity, **{attribute: {"Value": new[name]}})

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        vpc = one(aws, "describe_vpcs", "Vpcs", VpcIds=[identity])
        if vpc is None:
            return None
        here = [{"Name": "vpc-id", "Values": [identity]}]
        table = one(aws, "describe_route_tables", "RouteTables",
                    Filters=[*here, {"Name": "association.main", "Values": ["true"]}])  # fmt: skip
        group = one(aws, "describe_security_groups", "SecurityGroups",
                    Filters=[*here, {"Name": "group-name", "Values": ["default"]}])  # fmt: skip
        acl = one(aws, "describe_network_acls", "NetworkAcls",
                  Filters=[*here, {"Name": "default", "Values": ["true"]}])  # fmt: skip
        main = (table or {}).get("RouteTableId", "")
        switches = {
            name: aws("ec2", "describe_vpc_attribute", VpcId=identity, Attribute=name)[attribute]["Value"]
            for name, attribute in _SWITCHES.items()
        }
        return {
            "arn": arn(aws, "vpc", identity),
            "ownerId": vpc["OwnerId"],
            "cidrBlock": vpc["CidrBlock"],
            "instanceTenancy": vpc["InstanceTenancy"],
            "dhcpOptionsId": vpc["DhcpOptionsId"],
            "defaultRouteTableId": main,
            "mainRouteTableId": main,
            "defaultSecurityGroupId": (group or {}).get("GroupId", ""),
            "defaultNetworkAclId": (acl or {}).get("NetworkAclId", ""),
            "tags": as_map(vpc.get("Tags")),
            **switches,
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        self._switch(aws, identity, old, new)
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "delete_vpc", VpcId=identity)


class Subnet(Resource):
    token = "aws:ec2/subnet:Subnet"
    cfn = "AWS::EC2::Subnet"
    args: ClassVar = {
        "vpcId": Arg("VpcId", required=True),
        "cidrBlock": Arg("CidrBlock", required=True),
        "availabilityZone": Arg("AvailabilityZone"),
        "mapPublicIpOnLaunch": Arg("MapPublicIpOnLaunch"),
        **TAGS,
    }
    outputs = ("arn", "ownerId", "availabilityZoneId")
    absent = ("ipv6CidrBlockAssociationId",)

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("ec2", "create_subnet", VpcId=props["vpcId"], CidrBlock=props["cidrBlock"],
                   AvailabilityZone=props.get("availabilityZone"),
                   TagSpecifications=specification(aws, "subnet", props))["Subnet"]  # fmt: skip
        identity: str = made["SubnetId"]
        with half_made(identity):
            self._public(aws, identity, {}, props)
        return identity

    def _public(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        wanted = new.get("mapPublicIpOnLaunch", False)
        if wanted != old.get("mapPublicIpOnLaunch", False):
            aws("ec2", "modify_subnet_attribute", SubnetId=identity, MapPublicIpOnLaunch={"Value": wanted})

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        subnet = one(aws, "describe_subnets", "Subnets", SubnetIds=[identity])
        return subnet and {
            "arn": subnet.get("SubnetArn") or arn(aws, "subnet", identity),
            "ownerId": subnet["OwnerId"],
            "vpcId": subnet["VpcId"],
            "cidrBlock": subnet["CidrBlock"],
            "availabilityZone": subnet["AvailabilityZone"],
            "availabilityZoneId": subnet["AvailabilityZoneId"],
            "mapPublicIpOnLaunch": subnet["MapPublicIpOnLaunch"],
            "tags": as_map(subnet.get("Tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        self._public(aws, identity, old, new)
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "delete_subnet", SubnetId=identity)


class InternetGateway(Resource):
    token = "aws:ec2/internetGateway:InternetGateway"
    cfn = "AWS::EC2::InternetGateway"
    args: ClassVar = {"vpcId": Arg(), **TAGS}
    outputs = ("arn", "ownerId")

    def create(self, aws: Aws, props: Props) -> str:
        tags = specification(aws, "internet-gateway", props)
        made = aws("ec2", "create_internet_gateway", TagSpecifications=tags)["InternetGateway"]
        identity: str = made["InternetGatewayId"]
        if "vpcId" in props:
            with half_made(identity):
                aws("ec2", "attach_internet_gateway", InternetGatewayId=identity, VpcId=props["vpcId"])
        return identity

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        gateway = one(aws, "describe_internet_gateways", "InternetGateways", InternetGatewayIds=[identity])
        if gateway is None:
            return None
        attached = [a["VpcId"] for a in gateway.get("Attachments", [])]
        return {
            "arn": arn(aws, "internet-gateway", identity),
            "ownerId": gateway.get("OwnerId", aws.account),
            "tags": as_map(gateway.get("Tags")),
            **({"vpcId": attached[0]} if attached else {}),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        if old.get("vpcId") != new.get("vpcId"):
            if "vpcId" in old:
                aws("ec2", "detach_internet_gateway", InternetGatewayId=identity, VpcId=old["vpcId"])
            if "vpcId" in new:
                aws("ec2", "attach_internet_gateway", InternetGatewayId=identity, VpcId=new["vpcId"])
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        if "vpcId" in props:
            aws("ec2", "detach_internet_gateway", InternetGatewayId=identity, VpcId=props["vpcId"])
        aws("ec2", "delete_internet_gateway", InternetGatewayId=identity)


class Eip(Resource):
    token = "aws:ec2/eip:Eip"
    cfn = "AWS::EC2::EIP"
    args: ClassVar = {"domain": Arg("Domain"), **TAGS}
    outputs = ("arn", "allocationId", "publicIp", "publicDns")
    absent = ("associationId", "carrierIp", "customerOwnedIp", "privateDns", "privateIp", "ptrRecord")

    def create(self, aws: Aws, props: Props) -> str:
        tags = specification(aws, "elastic-ip", props)
        made = aws("ec2", "allocate_address", Domain=props.get("domain"), TagSpecifications=tags)
        return str(made["AllocationId"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        address = one(aws, "describe_addresses", "Addresses", AllocationIds=[identity])
        return address and {
            "arn": arn(aws, "elastic-ip", identity),
            "allocationId": identity,
            "publicIp": address["PublicIp"],
            "publicDns": f"ec2-{address['PublicIp'].replace('.', '-')}.compute-1.amazonaws.com",
            "domain": address["Domain"],
            "tags": as_map(address.get("Tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "release_address", AllocationId=identity)


class NatGateway(Resource):
    token = "aws:ec2/natGateway:NatGateway"
    cfn = "AWS::EC2::NatGateway"
    args: ClassVar = {
        "allocationId": Arg("AllocationId"),
        "subnetId": Arg("SubnetId", required=True),
        "connectivityType": Arg("ConnectivityType"),
        **TAGS,
    }
    outputs = ("networkInterfaceId", "privateIp", "publicIp")
    absent = ("associationId", "autoProvisionZones", "autoScalingIps", "regionalNatGatewayAddresses",
              "regionalNatGatewayAutoMode", "routeTableId")  # fmt: skip

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("ec2", "create_nat_gateway", AllocationId=props.get("allocationId"), SubnetId=props["subnetId"],
                   ConnectivityType=props.get("connectivityType"),
                   TagSpecifications=specification(aws, "natgateway", props))  # fmt: skip
        return str(made["NatGateway"]["NatGatewayId"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = one(aws, "describe_nat_gateways", "NatGateways", NatGatewayIds=[identity])
        if found is None or found["State"] == "deleted":
            return None
        address = found["NatGatewayAddresses"][0]
        return {
            "allocationId": address.get("AllocationId"),
            "subnetId": found["SubnetId"],
            "connectivityType": found.get("ConnectivityType", "public"),
            "networkInterfaceId": address.get("NetworkInterfaceId", ""),
            "privateIp": address.get("PrivateIp", ""),
            "publicIp": address.get("PublicIp", ""),
            "tags": as_map(found.get("Tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "delete_nat_gateway", NatGatewayId=identity)


TYPES: tuple[Resource, ...] = (Vpc(), Subnet(), InternetGateway(), Eip(), NatGateway())
