"""Service-linked roles, made by AWS on first use if whoever deploys may; and the cluster's admins, made by nobody."""

from collections.abc import Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, RefusedError
from srvmod.ops.preflight.answers import Answer, cant_tell, ok, will_fail

NOT_FOUND = {"NoSuchEntity", "NoSuchEntityException"}


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


def admins(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """Each principal with an access entry exists; those of other accounts can't be asked for here."""
    for arn in needs.admins:
        subject, needed = f"admin {arn.rpartition(':')[2]}", "an IAM principal that exists, or EKS refuses its entry"
        account, kind = arn.split(":")[4], arn.split(":")[5].partition("/")[0]
        if account != needs.account_id:
            yield cant_tell(subject, f"in account {account}", needed, "ask whoever keeps that account")
            continue
        name = arn.rpartition("/")[2]
        try:
            if kind == "role":
                found = str(aws.ask("iam", "get_role", RoleName=name)["Role"]["Arn"])
            else:
                found = str(aws.ask("iam", "get_user", UserName=name)["User"]["Arn"])
        except RefusedError as error:
            if error.code not in NOT_FOUND:
                raise
            found = "not there"
        if found == arn:
            yield ok(subject, found, needed)
        else:
            yield will_fail(subject, found, needed, "make it, or correct srvmod:cluster.admins (the path counts)")
