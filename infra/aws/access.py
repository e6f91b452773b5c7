"""Who may use the Kubernetes API: access entries of people, of deployments and of plans."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.names import Account, Names
from srvmod.infra.labels import PLAN_GROUP
from srvmod.infra.settings import AccessScope, AdminSettings

ACCESS_POLICIES = {
    AccessScope.CLUSTER_ADMIN: "AmazonEKSClusterAdminPolicy",
    AccessScope.ADMIN: "AmazonEKSAdminPolicy",
    AccessScope.VIEW: "AmazonEKSViewPolicy",
}
CLUSTER = "aws:eks/cluster:Cluster"
AUTHENTICATION_MODE = "API"
"""Access entries only, no `aws-auth`."""


def without_hidden_admin(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
    """A transform for `eks.Cluster`: whoever creates the cluster becomes no admin of it by that.

    The component says the opposite and has no argument for it (github.com/pulumi/pulumi-eks/issues/2373). Then EKS
    makes an access entry that no settings name, and refuses ours for the same role with ResourceInUseException.
    """
    if args.type_ != CLUSTER:
        return None
    access: dict[str, Any] = {
        "authenticationMode": AUTHENTICATION_MODE,
        "bootstrapClusterCreatorAdminPermissions": False,
    }
    return pulumi.ResourceTransformResult(props={**args.props, "accessConfig": access}, opts=args.opts)


@dataclass(frozen=True)
class AccessArgs:
    """`plan_roles` get no policy of EKS but the Kubernetes group PLAN_GROUP, whose rights the platform declares."""

    names: Names
    account: Account
    cluster_name: pulumi.Input[str]
    admins: Sequence[AdminSettings] = ()
    plan_roles: Sequence[str] = ()


def entries(name: str, args: AccessArgs, opts: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Declare an access entry per principal, and what it may do."""
    made: list[pulumi.Resource] = []
    for admin in args.admins:
        key = key_of(args.account, admin.principal_arn)
        entry = _entry(name, args, admin.principal_arn, opts)
        policy = aws.eks.AccessPolicyAssociation(
            f"{name}-{key}",
            cluster_name=args.cluster_name,
            principal_arn=entry.principal_arn,
            policy_arn=args.account.cluster_access_policy(ACCESS_POLICIES[admin.scope]),
            access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=opts,
        )
        made += [entry, policy]
    return [*made, *(_entry(name, args, role, opts, groups=[PLAN_GROUP]) for role in args.plan_roles)]


def _entry(
    name: str, args: AccessArgs, principal: str, opts: pulumi.ResourceOptions, groups: Sequence[str] | None = None
) -> aws.eks.AccessEntry:
    key = key_of(args.account, principal)
    return aws.eks.AccessEntry(
        f"{name}-{key}",
        cluster_name=args.cluster_name,
        principal_arn=principal,
        kubernetes_groups=groups,
        type="STANDARD",
        tags=args.names.tags(f"access-{key}"),
        opts=opts,
    )


def key_of(account: Account, principal: str) -> str:
    """What the resources of a principal are named by: its name alone where that says who it is (a role of the stack's
    own account without a path), else with a part of its ARN's SHA-256. It follows from the ARN and nothing else: an
    entry that got another name because of a new neighbour would be made a second time, which EKS refuses."""
    name = principal.rpartition("/")[2]
    if principal == account.role(name):
        return name
    return f"{name}-{hashlib.sha256(principal.encode()).hexdigest()[:8]}"
