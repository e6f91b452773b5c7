"""Service-linked roles: made by AWS on first use, if whoever deploys may make them."""

from collections.abc import Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, RefusedError
from srvmod.ops.preflight.answers import Answer, cant_tell, ok

NAMES = {
    "eks.amazonaws.com": "AWSServiceRoleForAmazonEKS",
    "eks-nodegroup.amazonaws.com": "AWSServiceRoleForAmazonEKSNodegroup",
    "autoscaling.amazonaws.com": "AWSServiceRoleForAutoScaling",
    "elasticloadbalancing.amazonaws.com": "AWSServiceRoleForElasticLoadBalancing",
}
"""AWS's own names of the roles (each service's documentation of its service-linked role)."""


def service_linked(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """Each role is there. One that isn't appears by itself only if the deployer has iam:CreateServiceLinkedRole."""
    for service in needs.service_linked_roles:
        name = NAMES[service]
        try:
            aws.ask("iam", "get_role", RoleName=name)
        except RefusedError as error:
            if error.code not in {"NoSuchEntity", "NoSuchEntityException"}:
                raise
            yield cant_tell(
                f"role {name}",
                "not there: AWS makes it on first use if the deployer has iam:CreateServiceLinkedRole",
                f"the service-linked role of {service}",
                f"aws iam create-service-linked-role --aws-service-name {service}",
            )
            continue
        yield ok(f"role {name}", "there", f"the service-linked role of {service}")
