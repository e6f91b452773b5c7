"""What Karpenter and its nodes are allowed to be: roles, access entry, interruption queue and its rules."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.cluster import NODE_POLICIES
from srvmod.infra.aws.documents import interruption, karpenter, trust
from srvmod.infra.aws.documents.statements import to_json
from srvmod.infra.aws.names import Account, Names
from srvmod.infra.aws.role import Role, RoleArgs
from srvmod.infra.labels import KARPENTER, KARPENTER_NAMESPACE

MESSAGE_RETENTION_SECONDS = 300


@dataclass(frozen=True)
class NodeIdentityArgs:
    """`cluster_name` is taken from the cluster's own output, so that nothing here exists before it.
    `instance_profile` makes a profile for the nodes' role: Karpenter makes its own unless it can't reach IAM, which has
    no VPC endpoint."""

    names: Names
    account: Account
    cluster_name: pulumi.Input[str]
    instance_profile: bool = False


class NodeIdentity(pulumi.ComponentResource):
    """Karpenter's controller role (by pod identity), the role of its nodes, and the queue that warns it.

    `node_role` and `queue` are plain names: the EC2NodeClass and the chart's values carry them in preview.
    """

    node_role: str
    instance_profile: str | None
    queue: str
    node_role_arn: pulumi.Output[str]
    controller_role_arn: pulumi.Output[str]
    queue_arn: pulumi.Output[str]

    def __init__(self, name: str, args: NodeIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:NodeIdentity", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        nodes = self._node_role()
        self.node_role = nodes.name
        self.node_role_arn = nodes.arn
        self.instance_profile = self._instance_profile(nodes) if args.instance_profile else None
        self.queue = args.names.of("interruption")
        self.queue_arn = self._interruption()
        self.controller_role_arn = self._controller_role()
        self.register_outputs(
            {
                "nodeRole": self.node_role,
                "nodeRoleArn": self.node_role_arn,
                "controllerRoleArn": self.controller_role_arn,
                "queue": self.queue,
                "queueArn": self.queue_arn,
            }
        )

    def _node_role(self) -> Role:
        args = self._args
        role = Role(
            f"{self._name}-node",
            RoleArgs(
                args.names,
                "node",
                "Nodes that Karpenter launches",
                trust.service("ec2.amazonaws.com"),
                managed={key: args.account.managed_policy(policy) for key, policy in NODE_POLICIES.items()},
            ),
            self._child,
        )
        aws.eks.AccessEntry(
            f"{self._name}-node",
            cluster_name=args.cluster_name,
            principal_arn=role.arn,
            type="EC2_LINUX",
            tags=args.names.tags("access-node"),
            opts=self._child,
        )
        return role

    def _instance_profile(self, nodes: Role) -> str:
        name = self._args.names.of("node")
        aws.iam.InstanceProfile(
            f"{self._name}-node",
            name=name,
            role=nodes.resource.name,
            tags=self._args.names.tags("node"),
            opts=self._child,
        )
        return name

    def _controller_role(self) -> pulumi.Output[str]:
        args = self._args
        role = Role(
            f"{self._name}-karpenter",
            RoleArgs(
                args.names,
                "karpenter",
                "Karpenter's controller",
                trust.pod_identity(),
                policies=karpenter.controller_policies(args.account, args.names.cluster, self.node_role, self.queue),
            ),
            self._child,
        )
        aws.eks.PodIdentityAssociation(
            f"{self._name}-karpenter",
            cluster_name=args.cluster_name,
            namespace=KARPENTER_NAMESPACE,
            service_account=KARPENTER,
            role_arn=role.arn,
            tags=args.names.tags("karpenter-identity"),
            opts=self._child,
        )
        return role.arn

    def _interruption(self) -> pulumi.Output[str]:
        args = self._args
        queue = aws.sqs.Queue(
            f"{self._name}-interruption",
            name=self.queue,
            message_retention_seconds=MESSAGE_RETENTION_SECONDS,
            sqs_managed_sse_enabled=True,
            tags=args.names.tags("interruption"),
            opts=self._child,
        )
        aws.sqs.QueuePolicy(
            f"{self._name}-interruption",
            queue_url=queue.url,
            policy=to_json(interruption.queue_policy(args.account, self.queue)),
            opts=self._child,
        )
        for event in interruption.EVENTS:
            rule = aws.cloudwatch.EventRule(
                f"{self._name}-{event.key}",
                name=args.names.of(event.key),
                description=event.description,
                event_pattern=to_json(event.pattern()),
                tags=args.names.tags(event.key),
                opts=self._child,
            )
            aws.cloudwatch.EventTarget(
                f"{self._name}-{event.key}",
                rule=rule.name,
                target_id="interruption-queue",
                arn=queue.arn,
                opts=self._child,
            )
        return queue.arn
