"""Route tables, routes, and tags on things that others made."""

from __future__ import annotations

from typing import ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, as_map
from srvmod.local.providers.aws.client import Aws, Refused
from srvmod.local.providers.values import Props

from .ec2_common import arn, one, retag, specification


class RouteTable(Resource):
    token = "aws:ec2/routeTable:RouteTable"
    cfn = "AWS::EC2::RouteTable"
    args: ClassVar = {"vpcId": Arg("VpcId", required=True), **TAGS}
    outputs = ("arn", "ownerId")

    def create(self, aws: Aws, props: Props) -> str:
        tags = specification(aws, "route-table", props)
        return str(
            aws("ec2", "create_route_table", VpcId=props["vpcId"], TagSpecifications=tags)["RouteTable"]["RouteTableId"]
        )

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        table = one(aws, "describe_route_tables", "RouteTables", RouteTableIds=[identity])
        return table and {
            "arn": arn(aws, "route-table", identity),
            "ownerId": table["OwnerId"],
            "vpcId": table["VpcId"],
            "tags": as_map(table.get("Tags")),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "delete_route_table", RouteTableId=identity)


_GATEWAYS = {"gatewayId": "GatewayId", "natGatewayId": "NatGatewayId"}


class Route(Resource):
    token = "aws:ec2/route:Route"
    cfn = "AWS::EC2::Route"
    args: ClassVar = {
        "routeTableId": Arg("RouteTableId", required=True),
        "destinationCidrBlock": Arg("DestinationCidrBlock", required=True),
        "gatewayId": Arg("GatewayId"),
        "natGatewayId": Arg("NatGatewayId"),
    }
    outputs = ("origin", "state")
    absent = ("instanceId", "instanceOwnerId", "networkInterfaceId")

    def create(self, aws: Aws, props: Props) -> str:
        aws("ec2", "create_route", **self._where(props), **self._to(props))
        return f"{props['routeTableId']}_{props['destinationCidrBlock']}"

    def _where(self, props: Props) -> Props:
        return {"RouteTableId": props["routeTableId"], "DestinationCidrBlock": props["destinationCidrBlock"]}

    def _to(self, props: Props) -> Props:
        return {argument: props.get(name) for name, argument in _GATEWAYS.items()}

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        table_id, destination = identity.split("_", 1)
        table = one(aws, "describe_route_tables", "RouteTables", RouteTableIds=[table_id])
        for route in (table or {}).get("Routes", []):
            if route.get("DestinationCidrBlock") == destination:
                found = {name: route[argument] for name, argument in _GATEWAYS.items() if route.get(argument)}
                return {"routeTableId": table_id, "destinationCidrBlock": destination,
                        "origin": route.get("Origin", "CreateRoute"), "state": route["State"], **found}  # fmt: skip
        return None

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        aws("ec2", "replace_route", **self._where(new), **self._to(new))

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        table_id, destination = identity.split("_", 1)
        aws("ec2", "delete_route", RouteTableId=table_id, DestinationCidrBlock=destination)


class RouteTableAssociation(Resource):
    token = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    cfn = "AWS::EC2::SubnetRouteTableAssociation"
    args: ClassVar = {"routeTableId": Arg("RouteTableId", required=True), "subnetId": Arg("SubnetId", required=True)}

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("ec2", "associate_route_table", RouteTableId=props["routeTableId"], SubnetId=props["subnetId"])
        return str(made["AssociationId"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        where = [{"Name": "association.route-table-association-id", "Values": [identity]}]
        table = one(aws, "describe_route_tables", "RouteTables", Filters=where)
        for association in (table or {}).get("Associations", []):
            if association["RouteTableAssociationId"] == identity:
                return {"routeTableId": association["RouteTableId"], "subnetId": association["SubnetId"]}
        return None

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "disassociate_route_table", AssociationId=identity)


class Tag(Resource):
    token = "aws:ec2/tag:Tag"
    cfn = "AWS::EC2::SecurityGroup"  # tags have no type of their own; nothing of this schema is used
    args: ClassVar = {
        "resourceId": Arg(required=True, identity=True),
        "key": Arg(required=True, identity=True),
        "value": Arg(required=True),
    }

    def create(self, aws: Aws, props: Props) -> str:
        self.update(aws, "", {}, props)
        return f"{props['resourceId']},{props['key']}"

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        resource, key = identity.split(",", 1)
        where = [{"Name": "resource-id", "Values": [resource]}, {"Name": "key", "Values": [key]}]
        found = one(aws, "describe_tags", "Tags", Filters=where)
        return found and {"resourceId": resource, "key": key, "value": found["Value"]}

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        tags = [{"Key": new["key"], "Value": new["value"]}]
        aws("ec2", "create_tags", Resources=[new["resourceId"]], Tags=tags)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        resource, key = identity.split(",", 1)
        try:
            aws("ec2", "delete_tags", Resources=[resource], Tags=[{"Key": key}])
        except Refused as error:
            if not error.missing:
                raise


TYPES: tuple[Resource, ...] = (RouteTable(), Route(), RouteTableAssociation(), Tag())
