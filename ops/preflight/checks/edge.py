"""What the gateway needs before it exists: the secret with its clients' keys, and its certificate."""

from collections.abc import Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, RefusedError
from srvmod.ops.preflight.answers import Answer, ok, will_fail

NOT_FOUND = "ResourceNotFoundException"


def api_keys(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """The secret exists; its value isn't read here."""
    name, needed = needs.api_keys_secret, f"a secret with a key for each of {', '.join(needs.api_clients)}"
    pairs = ", ".join(f'"{client}": "KEY"' for client in needs.api_clients)
    fix = (
        f"write {{{pairs}}} with long random keys into k.json, then: aws secretsmanager create-secret --name {name} "
        f"--region {needs.region} --secret-string file://k.json"
    )
    try:
        secret = aws.ask("secretsmanager", "describe_secret", SecretId=name)
    except RefusedError as error:
        if error.code != NOT_FOUND:
            raise
        yield will_fail(f"secret {name}", "not there", needed, fix)
        return
    if secret.get("DeletedDate"):
        restore = f"aws secretsmanager restore-secret --secret-id {name}"
        yield will_fail(f"secret {name}", "marked for deletion", needed, restore)
    else:
        yield ok(f"secret {name}", "there (its value isn't read)", needed)


def certificate(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """The load balancer's certificate is issued."""
    arn = needs.certificate_arn
    if arn is None:
        return
    needed, fix = "an issued certificate in the stack's region", "validate it, or correct srvmod:gateway.certificateArn"
    try:
        status = str(aws.ask("acm", "describe_certificate", CertificateArn=arn)["Certificate"]["Status"])
    except RefusedError as error:
        if error.code != NOT_FOUND:
            raise
        status = "not there"
    if status == "ISSUED":
        yield ok("certificate", status, needed)
    else:
        yield will_fail("certificate", f"{arn}: {status}", needed, fix)
