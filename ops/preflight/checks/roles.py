"""Service-linked roles: made by AWS on first use, if whoever deploys may make them."""

from collections.abc import Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account
from srvmod.ops.preflight.answers import Answer, cant_tell, ok


def service_linked(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """Each role is there. One that isn't appears by itself only if the deployer has iam:CreateServiceLinkedRole."""
    for service in needs.service_linked_roles:
        subject, needed = f"role of {service}", "the service-linked role"
        roles = aws.all("iam", "list_roles", "Roles", PathPrefix=f"/aws-service-role/{service}/")
        if roles:
            yield ok(subject, str(roles[0]["RoleName"]), needed)
            continue
        yield cant_tell(
            subject,
            "not there: AWS makes it on first use if the deployer has iam:CreateServiceLinkedRole",
            needed,
            f"aws iam create-service-linked-role --aws-service-name {service}",
        )
