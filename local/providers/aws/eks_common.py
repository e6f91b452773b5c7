"""What the EKS types have in common."""

from __future__ import annotations

from typing import Any

from srvmod.local.providers.aws.base import tag_changes
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.values import Props


def retag(aws: Aws, arn: str, old: Props, new: Props) -> None:
    put, gone = tag_changes(aws, old, new)
    if put:
        aws("eks", "tag_resource", resourceArn=arn, tags=put)
    if gone:
        aws("eks", "untag_resource", resourceArn=arn, tagKeys=gone)


def own(tags: dict[str, str] | None) -> dict[str, str]:
    return {k: v for k, v in (tags or {}).items() if not k.startswith("aws:")}


def time_text(value: Any) -> str:
    return str(value.strftime("%Y-%m-%dT%H:%M:%SZ"))


def changed(old: Props, new: Props, *names: str) -> bool:
    return any(old.get(n) != new.get(n) for n in names)
