"""Conditions of bucket policies, which moto leaves out: it would read "deny what isn't TLS" as "deny everything".

The simulation's plain HTTP on the stack's own bridge stands for AWS's TLS, so `aws:SecureTransport` counts as true.
What a policy allows to a service of AWS concerns no caller; access logs are asked for there, also beside statements
about everyone, which moto's own look doesn't expect.
"""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket
from moto.s3.utils import LOGGING_SERVICE_PRINCIPAL

SECURE_TRANSPORT_DENIED = {"Bool": {"aws:SecureTransport": "false"}}


def effective(policy: dict[str, Any]) -> dict[str, Any]:
    """The policy without statements that deny insecure transport or allow something to a service. Raises ValueError
    for any other condition."""
    kept = []
    for statement in policy["Statement"]:
        if statement["Effect"] == "Allow" and _service(statement):
            continue
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


def _service(statement: dict[str, Any]) -> str | None:
    """The service that a statement is about; None when it is about callers."""
    principal = statement.get("Principal")
    return principal.get("Service") if isinstance(principal, dict) else None


def _takes_logs(target_bucket: FakeBucket, target_prefix: str | None) -> bool:
    """Whether a bucket's policy lets S3 put access logs below a prefix into it."""
    if not target_bucket.policy:
        return False
    bucket = f"arn:{target_bucket.partition}:s3:::{target_bucket.name}"
    places = {f"{bucket}/{target_prefix or ''}*", f"{bucket}/*"}
    return any(
        statement["Effect"] == "Allow"
        and _service(statement) == LOGGING_SERVICE_PRINCIPAL
        and "s3:PutObject" in _listed(statement["Action"])
        and not places.isdisjoint(_listed(statement["Resource"]))
        for statement in json.loads(target_bucket.policy)["Statement"]
    )


def _listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def install() -> None:
    """Make moto's buckets judge by `effective`, and of access logs by `_takes_logs`."""
    FakeBucket.get_permission = _permission  # type: ignore[method-assign]
    FakeBucket._log_permissions_enabled_policy = staticmethod(_takes_logs)  # type: ignore[method-assign,assignment]
