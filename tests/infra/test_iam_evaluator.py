"""The evaluator against what AWS's documentation says of each rule."""

from typing import Any

import pytest

from tests.infra.policy_evaluator import Request, Resource, allowed

ARN = "arn:aws:s3:::b/k"


def allow(**more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*", **more}


def judge(*statements: dict[str, Any], action: str = "s3:GetObject", tags: Any = (), **context: Any) -> bool:
    request = Request(action, [Resource(ARN, dict(tags))], {key.replace("_", ":", 1): v for key, v in context.items()})
    return allowed([{"Statement": list(statements)}], request)


def test_nothing_is_allowed_by_itself() -> None:
    assert not judge()


def test_a_deny_wins() -> None:
    assert judge(allow())
    assert not judge(allow(), {**allow(), "Effect": "Deny"})


@pytest.mark.parametrize(
    ("action", "resource", "expected"),
    [
        ("s3:getobject", "*", True),
        ("s3:Get*", "arn:aws:s3:::b/*", True),
        ("s3:Get?bject", "arn:aws:s3:::?/k", True),
        ("s3:PutObject", "*", False),
        ("s3:GetObject", "arn:aws:s3:::b", False),
        ("s3:GetObject", "arn:aws:s3:::B/k", False),
    ],
)
def test_actions_ignore_case_and_resources_do_not(action: str, resource: str, expected: bool) -> None:
    assert judge(allow(Action=action, Resource=resource)) is expected


@pytest.mark.parametrize(
    ("condition", "context", "expected"),
    [
        ({"StringEquals": {"aws:a": ["x", "y"]}}, {"aws_a": "y"}, True),
        ({"StringEquals": {"aws:a": "x"}}, {"aws_a": "X"}, False),
        ({"StringEquals": {"AWS:A": "x"}}, {"aws_a": "x"}, True),
        ({"StringEquals": {"aws:a": "x"}}, {}, False),
        ({"StringNotEquals": {"aws:a": "x"}}, {}, True),
        ({"StringNotEquals": {"aws:a": ["x", "y"]}}, {"aws_a": "y"}, False),
        ({"StringEqualsIfExists": {"aws:a": "x"}}, {}, True),
        ({"StringEqualsIfExists": {"aws:a": "x"}}, {"aws_a": "y"}, False),
        ({"StringLike": {"aws:a": "x*"}}, {"aws_a": "xy"}, True),
        ({"StringLike": {"aws:a": "*"}}, {}, False),
        ({"Bool": {"aws:a": "false"}}, {"aws_a": "False"}, True),
        ({"Null": {"aws:a": "true"}}, {}, True),
        ({"Null": {"aws:a": "false"}}, {}, False),
        ({"ForAllValues:StringEquals": {"aws:a": ["x", "y"]}}, {"aws_a": ["x"]}, True),
        ({"ForAllValues:StringEquals": {"aws:a": ["x"]}}, {"aws_a": ["x", "z"]}, False),
        ({"ForAllValues:StringEquals": {"aws:a": ["x"]}}, {}, True),
        ({"ForAnyValue:StringEquals": {"aws:a": ["x"]}}, {"aws_a": ["z", "x"]}, True),
        ({"ForAnyValue:StringEquals": {"aws:a": ["x"]}}, {}, False),
        ({"StringEquals": {"aws:a": "x"}, "Bool": {"aws:b": "true"}}, {"aws_a": "x"}, False),
    ],
)
def test_conditions(condition: dict[str, Any], context: dict[str, Any], expected: bool) -> None:
    assert judge(allow(Condition=condition), **context) is expected


def test_tags_are_those_of_the_resource_that_is_judged() -> None:
    statement = allow(Condition={"StringEquals": {"aws:ResourceTag/team": "ml"}})
    mine, other = Resource("arn:aws:s3:::a", {"team": "ml"}), Resource("arn:aws:s3:::b", {"team": "web"})
    assert allowed([{"Statement": [statement]}], Request("s3:GetObject", [mine]))
    assert not allowed([{"Statement": [statement]}], Request("s3:GetObject", [mine, other]))


def test_what_it_does_not_know_is_an_error() -> None:
    with pytest.raises(NotImplementedError, match="NotAction"):
        judge({"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"})
    with pytest.raises(KeyError):
        judge(allow(Condition={"NumericLessThan": {"aws:a": "1"}}), aws_a="0")
    with pytest.raises(ValueError, match="ForAllValues"):
        judge(allow(Condition={"StringEquals": {"aws:a": "x"}}), aws_a=["x", "y"])
