"""KMS key policies."""

from collections.abc import Sequence

from srvmod.infra.aws.documents.statements import Document, allow, document
from srvmod.infra.aws.names import Account

LOG_SERVICE_ACTIONS = (
    "kms:Decrypt",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
)


def log_key_policy(account: Account, groups: Sequence[str]) -> Document:
    """The account's IAM policies decide, and CloudWatch Logs encrypts these log groups with the key."""
    arns = [account.arn("logs", f"log-group:{group}") for group in groups]
    logs = allow(
        "LogsEncrypt",
        LOG_SERVICE_ACTIONS,
        ["*"],
        principal={"Service": f"logs.{account.region}.amazonaws.com"},
        conditions={"StringEquals": {"kms:EncryptionContext:aws:logs:arn": arns}},
    )
    return document(*key_policy(account)["Statement"], logs)


def key_policy(account: Account) -> Document:
    """The account's IAM policies decide about the key, as AWS's own default policy says.

    Without this statement a key can become unmanageable for everyone, the account's root included. `Resource: *`
    in a key policy means this key only.
    """
    return document(
        allow(
            "AccountDecidesByIam",
            ["kms:*"],
            ["*"],
            principal={"AWS": account.arn("iam", "root", regional=False)},
        )
    )
