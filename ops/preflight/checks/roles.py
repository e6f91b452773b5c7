"""Service-linked roles, made by AWS on first use if whoever deploys may; the principals that the cluster lets in,
made by nobody; and whether the caller is one of them."""

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
    entries = [("admin", "cluster.admins", arn) for arn in needs.admins]
    entries += [("plan role", "cluster.planRoles", arn) for arn in needs.plan_roles]
    for what, setting, arn in entries:
        subject, needed = f"{what} {arn.rpartition(':')[2]}", "an IAM principal that exists, or EKS refuses its entry"
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
            yield will_fail(subject, found, needed, f"make it, or correct srvmod:{setting} (the path counts)")


def access(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """The caller may enter the cluster: whoever makes one gets no access by that."""
    subject, needed = "access to the cluster", "to deploy: one of srvmod:cluster.admins with scope clusterAdmin"
    if needs.simulated:
        yield ok(subject, "simulated AWS: one token is an admin", needed)
        return
    arn = str(aws.ask("sts", "get_caller_identity")["Arn"])
    if _among(arn, needs.deployers):
        yield ok(subject, f"{arn} may deploy", needed)
    elif _among(arn, needs.plan_roles):
        yield ok(subject, f"{arn} may plan, and not deploy", needed)
    else:
        do = "run `pulumi up` as one of them, or add this principal before the first one"
        yield cant_tell(subject, f"{arn} isn't one of those that may deploy or plan", needed, do)


def _among(caller: str, principals: tuple[str, ...]) -> bool:
    """Whether a caller's ARN belongs to one of the principals. A session of a role doesn't show the role's path."""
    account, (kind, *path) = caller.split(":")[4], caller.split(":")[5].split("/")
    wanted = (account, "role", path[0]) if kind == "assumed-role" else (account, kind, path[-1] if path else "")
    return wanted in {(p.split(":")[4], p.split(":")[5].partition("/")[0], p.rpartition("/")[2]) for p in principals}
