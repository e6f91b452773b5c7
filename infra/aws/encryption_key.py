"""A KMS key with rotation and an alias."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.documents.keys import key_policy
from srvmod.infra.aws.documents.statements import Document, to_json
from srvmod.infra.aws.names import Account, Names

DELETION_WINDOW_DAYS = 30


@dataclass(frozen=True)
class EncryptionKeyArgs:
    """`purpose` becomes part of the alias and the description; `policy` is the account's own when left out."""

    names: Names
    account: Account
    purpose: str
    policy: Document | None = None


class EncryptionKey(pulumi.ComponentResource):
    """One key per purpose, so that access to one kind of data can be taken away alone."""

    arn: pulumi.Output[str]

    def __init__(self, name: str, args: EncryptionKeyArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:EncryptionKey", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        part = f"{args.purpose}-key"
        key = aws.kms.Key(
            name,
            description=f"{args.names.cluster}: {args.purpose}",
            enable_key_rotation=True,
            deletion_window_in_days=DELETION_WINDOW_DAYS,
            policy=to_json(args.policy or key_policy(args.account)),
            tags=args.names.tags(part),
            opts=child,
        )
        aws.kms.Alias(name, name=f"alias/{args.names.of(args.purpose)}", target_key_id=key.key_id, opts=child)
        self.arn = key.arn
        self.register_outputs({"arn": self.arn})
