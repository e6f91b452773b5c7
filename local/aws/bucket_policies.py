"""Conditions of bucket policies, which moto leaves out: it would read "deny what isn't TLS" as "deny everything".

The simulation's plain HTTP on the stack's own bridge stands for AWS's TLS, so `aws:SecureTransport` counts as true.
"""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket

SECURE_TRANSPORT_DENIED = {"Bool": {"aws:SecureTransport": "false"}}


def effective(policy: dict[str, Any]) -> dict[str, Any]:
    """The policy without statements that deny insecure transport. Raises ValueError for any other condition."""
    kept = []
    for statement in policy["Statement"]:
        condition = statement.get("Condition")
        if condition is None:
            kept.append(statement)
        elif condition != SECURE_TRANSPORT_DENIED or statement["Effect"] != "Deny":
            raise ValueError(
                f"bucket policy statement {statement.get('Sid', '?')}: condition {condition} isn't simulated"
            )
    return {**policy, "Statement": kept}


def _permission(self: FakeBucket, action: str, resource: str) -> PermissionResult:
    if self.policy is None:
        return PermissionResult.NEUTRAL
    policy = effective(json.loads(self.policy))
    if not policy["Statement"]:
        return PermissionResult.NEUTRAL
    return IAMPolicy(json.dumps(policy)).is_action_permitted(action, resource)


def install() -> None:
    """Make moto's buckets judge by `effective`."""
    FakeBucket.get_permission = _permission  # type: ignore[method-assign]
