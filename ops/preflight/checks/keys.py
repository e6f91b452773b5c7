"""The KMS keys: enabled, and rotated."""

from collections.abc import Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, RefusedError
from srvmod.ops.preflight.answers import Answer, ok, will_fail


def usable(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """A key that is there already can encrypt; one that isn't is made by the program."""
    for alias in needs.key_aliases:
        subject, needed = f"KMS {alias}", "enabled, with rotation"
        try:
            key = aws.ask("kms", "describe_key", KeyId=alias)["KeyMetadata"]
        except RefusedError as error:
            if error.code != "NotFoundException":
                raise
            yield ok(subject, "not there: the program makes it", needed)
            continue
        state = str(key["KeyState"])
        if state != "Enabled":
            fix = f"aws kms cancel-key-deletion --key-id {key['KeyId']}; " if state == "PendingDeletion" else ""
            yield will_fail(
                subject, f"{key['KeyId']}: {state}", needed, f"{fix}aws kms enable-key --key-id {key['KeyId']}"
            )
            continue
        rotates = bool(aws.ask("kms", "get_key_rotation_status", KeyId=key["KeyId"])["KeyRotationEnabled"])
        if rotates:
            yield ok(subject, f"{key['KeyId']}: enabled, rotated", needed)
        else:
            yield will_fail(
                subject, f"{key['KeyId']}: not rotated", needed, "pulumi refresh, then pulumi up switches it on again"
            )
