"""VPC flow logs."""

from __future__ import annotations

from typing import ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, as_map
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.aws.ec2_common import arn, one, retag, specification
from srvmod.local.providers.values import Props


class FlowLog(Resource):
    token = "aws:ec2/flowLog:FlowLog"
    cfn = "AWS::EC2::FlowLog"
    args: ClassVar = {
        "vpcId": Arg("ResourceId", required=True),
        "trafficType": Arg("TrafficType"),
        "logDestinationType": Arg("LogDestinationType"),
        "logDestination": Arg("LogDestination"),
        "iamRoleArn": Arg("DeliverLogsPermissionArn"),
        "maxAggregationInterval": Arg("MaxAggregationInterval"),
        "logFormat": Arg("LogFormat"),
        **TAGS,
    }
    outputs = ("arn",)

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("ec2", "create_flow_logs", ResourceIds=[props["vpcId"]], ResourceType="VPC",
                   TrafficType=props.get("trafficType"), LogDestinationType=props.get("logDestinationType"),
                   LogDestination=props.get("logDestination"), DeliverLogsPermissionArn=props.get("iamRoleArn"),
                   MaxAggregationInterval=props.get("maxAggregationInterval"), LogFormat=props.get("logFormat"),
                   TagSpecifications=specification(aws, "vpc-flow-log", props))  # fmt: skip
        if refused := made.get("Unsuccessful"):
            raise ValueError(f"create_flow_logs({props['vpcId']}) refused: {refused[0]['Error']}")
        return str(made["FlowLogIds"][0])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = one(aws, "describe_flow_logs", "FlowLogs", FlowLogIds=[identity])
        names = {"vpcId": "ResourceId", "trafficType": "TrafficType", "logDestinationType": "LogDestinationType",
                 "logDestination": "LogDestination", "iamRoleArn": "DeliverLogsPermissionArn",
                 "logFormat": "LogFormat"}  # fmt: skip
        return found and {
            "arn": arn(aws, "vpc-flow-log", identity),
            "tags": as_map(found.get("Tags")),
            "maxAggregationInterval": int(found["MaxAggregationInterval"]),
            **{name: found[key] for name, key in names.items() if found.get(key)},
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        retag(aws, identity, old, new)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ec2", "delete_flow_logs", FlowLogIds=[identity])


TYPES: tuple[Resource, ...] = (FlowLog(),)
