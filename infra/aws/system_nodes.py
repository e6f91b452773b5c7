"""The managed node group that carries controllers."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.names import Names

LABELS = {"srvmod.dev/nodes": "system"}
ROOT_DEVICE = "/dev/xvda"
"""Root device of Amazon Linux 2023."""


@dataclass(frozen=True)
class SystemNodes:
    """Types and numbers; Karpenter's two replicas need two nodes."""

    instance_types: Sequence[str]
    count: int = 2
    disk_gib: int = 50


@dataclass(frozen=True)
class SystemNodeGroupArgs:
    """`subnet_ids` of different zones: the group spreads over them."""

    names: Names
    cluster_name: pulumi.Input[str]
    subnet_ids: pulumi.Input[Sequence[str]]
    role_arn: pulumi.Input[str]
    version: str
    nodes: SystemNodes


class SystemNodeGroup(pulumi.ComponentResource):
    """Nodes with encrypted disks whose pods can't reach the instance's metadata, and so not the node's role."""

    group: aws.eks.NodeGroup

    def __init__(self, name: str, args: SystemNodeGroupArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:SystemNodeGroup", name, None, opts)
        size, names = args.nodes, args.names
        child = pulumi.ResourceOptions(parent=self)
        template = aws.ec2.LaunchTemplate(
            name,
            name=names.of("system"),
            update_default_version=True,
            metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
                http_endpoint="enabled",
                http_tokens="required",
                http_put_response_hop_limit=1,
            ),
            block_device_mappings=[
                aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                    device_name=ROOT_DEVICE,
                    ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                        volume_size=size.disk_gib, volume_type="gp3", encrypted="true", delete_on_termination="true"
                    ),
                )
            ],
            tag_specifications=[
                aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=names.tags("system"))
                for kind in ("instance", "volume")
            ],
            tags=names.tags("system"),
            opts=child,
        )
        self.group = aws.eks.NodeGroup(
            name,
            cluster_name=args.cluster_name,
            # No name: Pulumi makes one with a suffix, so that a group that replaces this one is made before it goes.
            node_role_arn=args.role_arn,
            subnet_ids=args.subnet_ids,
            # One number, since nothing scales the group; EKS refuses a minimum above the desired size.
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                min_size=size.count, max_size=size.count, desired_size=size.count
            ),
            instance_types=list(size.instance_types),
            ami_type="AL2023_x86_64_STANDARD",
            capacity_type="ON_DEMAND",
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(str)
            ),
            labels=LABELS,
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            version=args.version,
            tags=names.tags("system"),
            opts=child,
        )
        self.register_outputs({"nodeGroupName": self.group.node_group_name})
