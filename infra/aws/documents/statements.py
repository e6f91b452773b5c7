"""Building blocks of policy documents."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]
Statement = dict[str, Any]


def document(*statements: Statement) -> Document:
    """A policy document of the current language version."""
    return {"Version": "2012-10-17", "Statement": list(statements)}


def allow(
    sid: str,
    actions: Sequence[str],
    resources: Sequence[str] | None = None,
    *,
    conditions: Mapping[str, Mapping[str, str | Sequence[str]]] | None = None,
    principal: Mapping[str, str | Sequence[str]] | None = None,
) -> Statement:
    """An Allow statement; leave `resources` out only in trust policies."""
    statement: Statement = {"Sid": sid, "Effect": "Allow", "Action": list(actions)}
    if principal is not None:
        statement["Principal"] = dict(principal)
    if resources is not None:
        statement["Resource"] = list(resources)
    if conditions:
        statement["Condition"] = {operator: dict(tests) for operator, tests in conditions.items()}
    return statement


def deny_insecure_transport(actions: str, resources: Sequence[str]) -> Statement:
    """Refuse every request that doesn't come over TLS."""
    return {
        "Sid": "DenyInsecureTransport",
        "Effect": "Deny",
        "Principal": "*",
        "Action": [actions],
        "Resource": list(resources),
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def to_json(doc: Document) -> str:
    """The document as AWS takes it: one line, stable order."""
    return json.dumps(doc, sort_keys=True, separators=(",", ":"))
