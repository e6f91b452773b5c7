"""Judges a request by identity policies, as AWS does: an explicit Deny wins, then an Allow, else it is refused.

Semantics: IAM User Guide, "Policy evaluation logic" and "IAM JSON policy elements: Condition operators". Only what
this product's documents use; anything else raises, so that nothing is passed over in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

Context = Mapping[str, str | Sequence[str]]


@dataclass(frozen=True)
class Resource:
    """A resource of a request with the tags that it has already."""

    arn: str
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Request:
    """One action on its resources. `context` holds condition keys; a resource's tags are added for it."""

    action: str
    resources: Sequence[Resource]
    context: Context = field(default_factory=dict[str, "str | Sequence[str]"])


def allowed(documents: Iterable[Mapping[str, Any]], request: Request) -> bool:
    """Whether the documents together allow the action on every resource of the request."""
    return not refused(documents, request)


def refused(documents: Iterable[Mapping[str, Any]], request: Request) -> list[str]:
    """ARNs of the request's resources that the documents don't allow the action on."""
    statements = [statement for document in documents for statement in document["Statement"]]
    return [resource.arn for resource in request.resources if not _allows(statements, request, resource)]


def _allows(statements: Sequence[Mapping[str, Any]], request: Request, resource: Resource) -> bool:
    tags = {f"aws:ResourceTag/{key}": value for key, value in resource.tags.items()}
    context = {key.lower(): _many(value) for key, value in {**request.context, **tags}.items()}
    effects = [s["Effect"] for s in statements if _applies(s, request.action, resource.arn, context)]
    return "Deny" not in effects and "Allow" in effects


def _applies(statement: Mapping[str, Any], action: str, arn: str, context: Mapping[str, list[str]]) -> bool:
    if unknown := set(statement) - {"Sid", "Effect", "Action", "Resource", "Condition", "Principal"}:
        raise NotImplementedError(f"statement elements {sorted(unknown)}")
    return (
        any(_like(pattern.lower(), action.lower()) for pattern in _many(statement["Action"]))
        and any(_like(pattern, arn) for pattern in _many(statement["Resource"]))
        and all(
            _holds(operator, context.get(key.lower()), _many(values))
            for operator, tests in statement.get("Condition", {}).items()
            for key, values in tests.items()
        )
    )


def _many(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else [str(item) for item in value]


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile("".join({"*": ".*", "?": "."}.get(c, re.escape(c)) for c in text), re.DOTALL)


def _like(pattern: str, value: str) -> bool:
    return _pattern(pattern).fullmatch(value) is not None


_TESTS: Mapping[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda wanted, value: wanted == value,
    "StringLike": _like,
    "ArnEquals": _like,
    "ArnLike": _like,
    "Bool": lambda wanted, value: wanted.lower() == value.lower(),
}
_NEGATED = {"StringNotEquals": "StringEquals", "StringNotLike": "StringLike"}


def _holds(operator: str, values: list[str] | None, wanted: list[str]) -> bool:
    """Whether one condition key passes; `values` is None when the request hasn't got the key."""
    if operator == "Null":
        return (values is None) == (wanted == ["true"])
    if operator.startswith("ForAllValues:"):
        name = operator.removeprefix("ForAllValues:")
        return all(_one(name, value, wanted) for value in values or ())
    if operator.startswith("ForAnyValue:"):
        name = operator.removeprefix("ForAnyValue:")
        return any(_one(name, value, wanted) for value in values or ())
    base = operator.removesuffix("IfExists")
    if values is None:
        return base != operator or base in _NEGATED
    if len(values) != 1:
        raise ValueError(f"{operator}: a key with several values needs ForAllValues or ForAnyValue")
    return _one(base, values[0], wanted)


def _one(operator: str, value: str, wanted: list[str]) -> bool:
    if operator in _NEGATED:
        return not _one(_NEGATED[operator], value, wanted)
    return any(_TESTS[operator](item, value) for item in wanted)
