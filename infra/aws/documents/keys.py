"""KMS key policies."""

from srvmod.infra.aws.documents.statements import Document, allow, document
from srvmod.infra.aws.names import Account


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
