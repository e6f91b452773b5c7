"""Who may write flow logs."""

from srvmod.infra.aws.documents.statements import Document, allow, document
from srvmod.infra.aws.names import Account


def writer_policy(account: Account, log_group: str) -> Document:
    """Write streams of one log group. DescribeLogGroups has no resource-level permission."""
    group = account.arn("logs", f"log-group:{log_group}")
    return document(
        allow(
            "WriteStreams",
            ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"],
            [group, f"{group}:*"],
        ),
        allow("FindGroup", ["logs:DescribeLogGroups"], ["*"]),
    )
