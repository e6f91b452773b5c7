"""The pool of p5 nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.platform.documents import pool as documents
from srvmod.infra.platform.objects import declare

NODE_CLASS_CONDITIONS = (
    "SubnetsReady",
    "SecurityGroupsReady",
    "AMIsReady",
    "InstanceProfileReady",
    "ValidationSucceeded",
    "Ready",
)
"""What Karpenter 1.14 reports of an EC2NodeClass, in its own order of checks."""
READY_WITHIN = "3m"
"""Karpenter needs seconds, and up to a minute when IAM is slow to show a new instance profile."""

DRAINED_WITHIN = "40m"
"""Deleting the class waits until Karpenter has drained and terminated the pool's nodes: longer than their grace."""


@dataclass(frozen=True)
class PoolArgs:
    """The pool, all of it known before anything exists; `identity` makes its role."""

    pool: documents.Pool
    aws: aws.Provider
    identity: Sequence[pulumi.Resource]


class Pool(pulumi.ComponentResource):
    """An EC2NodeClass and a NodePool of the same name.

    The API server accepts a node class that Karpenter later finds wrong; its conditions say so, and nothing launches
    until all are True. They are waited for one by one: the message then names what is wrong, not just `Ready`.
    """

    name: str

    def __init__(self, name: str, args: PoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:platform:Pool", name, None, opts)
        self.name = args.pool.name
        document = documents.node_class(args.pool)
        if "role" in document["spec"]:
            document["spec"]["role"] = existing_role(document["spec"]["role"], args)
        node_class = declare(
            f"{name}-class",
            document,
            pulumi.ResourceOptions(
                parent=self,
                custom_timeouts=pulumi.CustomTimeouts(create=READY_WITHIN, update=READY_WITHIN, delete=DRAINED_WITHIN),
            ),
            conditions=NODE_CLASS_CONDITIONS,
        )
        declare(
            f"{name}-pool",
            documents.node_pool(args.pool),
            # Deleted before its class: Karpenter needs the class to terminate the pool's nodes.
            pulumi.ResourceOptions(parent=self, depends_on=[node_class]),
        )
        self.register_outputs({"name": self.name})


def existing_role(name: str, args: PoolArgs) -> pulumi.Output[str]:
    """The role's name, once AWS knows the role. Of a wrong one Karpenter says nothing but in its log, and launches
    nothing; here AWS's answer ends the deployment and names it."""
    opts = pulumi.InvokeOutputOptions(provider=args.aws, depends_on=list(args.identity))
    return aws.iam.get_role_output(name=name, opts=opts).name
