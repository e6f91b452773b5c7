"""What the AWS Load Balancer Controller is allowed to do."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.documents import trust
from srvmod.infra.aws.documents.load_balancer import controller_policies
from srvmod.infra.aws.names import Account, Names
from srvmod.infra.aws.role import Role, RoleArgs
from srvmod.infra.labels import LOAD_BALANCER_CONTROLLER, LOAD_BALANCER_NAMESPACE


@dataclass(frozen=True)
class LoadBalancerIdentityArgs:
    """`cluster_name` is taken from the cluster's own output, so that nothing here exists before it."""

    names: Names
    account: Account
    cluster_name: pulumi.Input[str]


class LoadBalancerIdentity(pulumi.ComponentResource):
    """The controller's role, given to its service account by pod identity."""

    role_arn: pulumi.Output[str]

    def __init__(self, name: str, args: LoadBalancerIdentityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:LoadBalancerIdentity", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        role = Role(
            f"{name}-controller",
            RoleArgs(
                args.names,
                "load-balancer",
                "AWS Load Balancer Controller",
                trust.pod_identity(),
                policies=controller_policies(args.account, args.names.cluster),
            ),
            child,
        )
        aws.eks.PodIdentityAssociation(
            f"{name}-controller",
            cluster_name=args.cluster_name,
            namespace=LOAD_BALANCER_NAMESPACE,
            service_account=LOAD_BALANCER_CONTROLLER,
            role_arn=role.arn,
            tags=args.names.tags("load-balancer-identity"),
            opts=child,
        )
        self.role_arn = role.arn
        self.register_outputs({"roleArn": self.role_arn})
