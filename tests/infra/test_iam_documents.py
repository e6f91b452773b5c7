"""Every identity policy that the environments render, against AWS's service authorization reference."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import cfnlint
import pytest

from srvmod.infra.aws.documents.flow_logs import writer_policy
from srvmod.infra.aws.documents.weights import reader_policy
from srvmod.infra.aws.documents.wildcards import REASONS, allow_everywhere
from srvmod.infra.aws.names import Account
from tests.infra.environment import ENVIRONMENTS, graph
from tests.infra.policy_evaluator import Request, Resource, allowed

POLICY = "aws:iam/policy:Policy"
ACCOUNT = Account("111122223333", "us-east-1")
KEY = "arn:aws:kms:us-east-1:111122223333:key/k"
VIA_S3 = {"kms:ViaService": "s3.us-east-1.amazonaws.com"}


@cache
def reference() -> dict[str, Any]:
    """Service prefix → its actions and resources (the reference as cfn-lint ships it)."""
    file = Path(cfnlint.__file__).parent / "data" / "AdditionalSpecs" / "Policies.json"
    return json.loads(file.read_bytes())


def statements(env: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for policy in graph(env).of_type(POLICY):
        for statement in json.loads(policy.inputs["policy"])["Statement"]:
            yield policy.name, statement


def granted() -> set[str]:
    """Actions on `*` in all environments."""
    return {
        action
        for env in ENVIRONMENTS
        for _, statement in statements(env)
        if statement["Resource"] == ["*"]
        for action in statement["Action"]
    }


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_no_policy_has_wildcards_among_its_actions(env: str) -> None:
    found = list(statements(env))
    assert len(found) > 15
    assert [name for name, statement in found if any("*" in action for action in statement["Action"])] == []
    assert {statement["Effect"] for _, statement in found} == {"Allow"}


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_every_action_exists(env: str) -> None:
    for name, statement in statements(env):
        for action in statement["Action"]:
            service, operation = action.split(":")
            assert operation.lower() in reference()[service]["Actions"], f"{name}: {action}"


def test_the_list_of_wildcards_is_what_is_granted() -> None:
    assert granted() == set(REASONS)
    assert all(len(reason) > 20 for reason in REASONS.values())


@pytest.mark.parametrize("action", sorted(REASONS))
def test_an_action_on_everything_can_not_be_narrowed(action: str) -> None:
    service, operation = action.split(":")
    assert "Resources" not in reference()[service]["Actions"][operation.lower()]


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_named_resources_are_of_a_kind_that_the_action_knows(env: str) -> None:
    """An ARN of a wrong kind allows nothing, and nobody notices before it is needed."""
    for name, statement in statements(env):
        if statement["Resource"] == ["*"]:
            continue
        for action in statement["Action"]:
            service, operation = action.split(":")
            kinds = reference()[service]["Actions"][operation.lower()].get("Resources", [])
            assert kinds, f"{name}: {action} has no resource-level permission"


def test_wildcards_need_a_reason() -> None:
    with pytest.raises(ValueError, match="s3:GetObject on every resource"):
        allow_everywhere("X", ["s3:GetObject"], "us-east-1")


@pytest.mark.parametrize(
    ("action", "arn", "context", "expected"),
    [
        ("s3:GetObject", "arn:aws:s3:::w/models/r1/config.json", {}, True),
        ("s3:GetObject", "arn:aws:s3:::w/other/config.json", {}, False),
        ("s3:GetObject", "arn:aws:s3:::x/models/r1/config.json", {}, False),
        ("s3:PutObject", "arn:aws:s3:::w/models/r1/config.json", {}, False),
        ("s3:DeleteObject", "arn:aws:s3:::w/models/r1/config.json", {}, False),
        ("s3:ListBucket", "arn:aws:s3:::w", {"s3:prefix": "models/r1/"}, True),
        ("s3:ListBucket", "arn:aws:s3:::w", {}, False),
        ("s3:ListBucket", "arn:aws:s3:::w", {"s3:prefix": "other/"}, False),
        ("kms:Decrypt", KEY, VIA_S3, True),
        ("kms:Decrypt", KEY, {}, False),
        ("kms:Decrypt", f"{KEY}x", VIA_S3, False),
        ("kms:Encrypt", KEY, VIA_S3, False),
    ],
)  # fmt: skip
def test_the_reader_of_weights_reads_weights_and_nothing_else(
    action: str, arn: str, context: dict[str, str], expected: bool
) -> None:
    document = reader_policy(ACCOUNT, "w", "models", KEY)
    assert allowed([document], Request(action, [Resource(arn)], context)) is expected


@pytest.mark.parametrize(
    ("action", "group", "expected"),
    [
        ("logs:PutLogEvents", "/aws/vpc/c:log-stream:eni-1", True),
        ("logs:PutLogEvents", "/aws/vpc/d:log-stream:eni-1", False),
        ("logs:DeleteLogGroup", "/aws/vpc/c", False),
    ],
)
def test_flow_logs_go_to_their_group(action: str, group: str, expected: bool) -> None:
    arn = f"arn:aws:logs:us-east-1:111122223333:log-group:{group}"
    assert allowed([writer_policy(ACCOUNT, "/aws/vpc/c")], Request(action, [Resource(arn)])) is expected
