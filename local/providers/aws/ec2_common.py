"""What the EC2 types have in common: tags, ARNs, and finding one thing by its id."""

from __future__ import annotations

from typing import Any

from srvmod.local.providers.aws.base import as_list, tag_changes
from srvmod.local.providers.aws.client import Aws, Refused
from srvmod.local.providers.values import Props


def specification(aws: Aws, kind: str, props: Props) -> list[dict[str, Any]] | None:
    """TagSpecifications for creation; None without tags."""
    tags = aws.tags(props)
    return [{"ResourceType": kind, "Tags": as_list(tags)}] if tags else None


def retag(aws: Aws, identity: str, old: Props, new: Props) -> None:
    """Lead the tags of ``identity`` from old to new."""
    put, gone = tag_changes(aws, old, new)
    if put:
        aws("ec2", "create_tags", Resources=[identity], Tags=as_list(put))
    if gone:
        aws("ec2", "delete_tags", Resources=[identity], Tags=[{"Key": k} for k in gone])


def arn(aws: Aws, kind: str, identity: str) -> str:
    return f"arn:aws:ec2:{aws.region}:{aws.account}:{kind}/{identity}"


def one(aws: Aws, operation: str, key: str, **params: Any) -> dict[str, Any] | None:
    """The single thing that a Describe call finds; None when it is gone."""
    try:
        found = aws("ec2", operation, **params)[key]
    except Refused as error:
        if error.missing:
            return None
        raise
    return found[0] if found else None
