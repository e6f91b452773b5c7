"""Who may write flow logs."""

from srvmod.infra.aws.documents.statements import Document, allow, document
from srvmod.infra.aws.documents.wildcards import allow_everywhere
from srvmod.infra.aws.names import Account


def writer_policy(account: Account, log_group: str) -> Document:
    """Write streams of one log group."""
    group = account.arn("logs", f"log-group:{log_group}")
    return document(
        allow(
            "WriteStreams",
            ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
            [group, f"{group}:*"],
        ),
        allow_everywhere("FindGroup", ["logs:DescribeLogGroups"], account.region),
    )
