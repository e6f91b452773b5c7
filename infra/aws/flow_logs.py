"""Flow logs of a VPC."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.documents import trust
from srvmod.infra.aws.documents.flow_logs import writer_policy
from srvmod.infra.aws.names import Account, Names
from srvmod.infra.aws.role import Role, RoleArgs

AGGREGATION_SECONDS = 600


@dataclass(frozen=True)
class FlowLogsArgs:
    """The VPC whose traffic is logged; the key encrypts the logs."""

    names: Names
    account: Account
    vpc_id: pulumi.Input[str]
    key_arn: pulumi.Input[str]
    retention_days: int


class FlowLogs(pulumi.ComponentResource):
    """Accepted and refused flows of the VPC in a log group."""

    def __init__(self, name: str, args: FlowLogsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:FlowLogs", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        log_group = args.names.flow_log_group
        group = aws.cloudwatch.LogGroup(
            name,
            name=log_group,
            retention_in_days=args.retention_days,
            kms_key_id=args.key_arn,
            tags=args.names.tags("flows"),
            opts=child,
        )
        role = Role(
            f"{name}-writer",
            RoleArgs(
                args.names,
                "flow-logs",
                "Writes VPC flow logs",
                trust.service("vpc-flow-logs.amazonaws.com"),
                policies={"write": writer_policy(args.account, log_group)},
            ),
            child,
        )
        aws.ec2.FlowLog(
            name,
            vpc_id=args.vpc_id,
            traffic_type="ALL",
            log_destination_type="cloud-watch-logs",
            log_destination=group.arn,
            iam_role_arn=role.arn,
            max_aggregation_interval=AGGREGATION_SECONDS,
            tags=args.names.tags("flows"),
            opts=pulumi.ResourceOptions(parent=self, depends_on=role.attachments),
        )
        self.register_outputs({})
