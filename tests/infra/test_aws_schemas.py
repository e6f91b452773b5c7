"""Every argument that the program gives AWS, against AWS's own resource schemas (CloudFormation's, from cfn-lint).

Types, enums, patterns, ranges, list sizes and unknown properties, at any depth.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import jsonschema
import pytest
import regex

from srvmod.local.providers.aws import schemas
from srvmod.local.providers.aws.registry import TYPES
from tests.infra.aws_template import PLACEHOLDER, properties, properties_of, realistic, resources
from tests.infra.environment import ENVIRONMENTS, graph


@cache
def validator(cfn: str) -> Any:
    """AWS's schema of a type. What a type needs as a whole isn't asked: Pulumi splits some types into several."""
    schema = copy.deepcopy(schemas.schema(cfn))
    for key in ("required", "anyOf", "oneOf", "allOf", "dependencies", "dependentRequired", "dependentExcluded"):
        schema.pop(key, None)
    schema["additionalProperties"] = False
    kind: Any = jsonschema.validators.extend(jsonschema.Draft7Validator, {"pattern": _pattern})
    return kind(schema)


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
    """AWS's patterns have Unicode classes, which Python's own module doesn't read."""
    if isinstance(value, str) and not regex.search(pattern, value):
        yield jsonschema.ValidationError(f"{value!r} does not match {pattern!r}")


def problems(cfn: str, document: Mapping[str, Any]) -> Iterator[str]:
    for error in validator(cfn).iter_errors(document):
        yield f"{'/'.join(map(str, error.absolute_path))}: {error.message[:300]}"


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_arguments_are_what_aws_takes(env: str) -> None:
    recorded = graph(env)
    assert len(resources(recorded)) > 50
    found = [
        f"{resource.type} {resource.name} {text}"
        for resource in resources(recorded)
        for text in problems(TYPES[resource.type].cfn, properties_of(recorded, resource))
    ]
    assert found == []


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_no_placeholder_is_left_for_the_schemas(env: str) -> None:
    recorded = graph(env)
    left = {m[0] for r in resources(recorded) for m in PLACEHOLDER.finditer(json.dumps(realistic(recorded, r)))}
    assert left == set()


@pytest.mark.parametrize(
    ("token", "given", "said"),
    [
        ("aws:sqs/queue:Queue", {"messageRetentionSeconds": "300"}, "not of type 'integer'"),
        ("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", {"accessScope": {"type": "all"}}, "is not one of"),
        ("aws:eks/nodeGroup:NodeGroup", {"scalingConfig": {"minSize": -1}}, "minimum"),
        ("aws:kms/key:Key", {"deletionWindowInDays": 31}, "maximum"),
        ("aws:eks/cluster:Cluster", {"name": "a" * 101}, "too long"),
        ("aws:ec2/vpcEndpoint:VpcEndpoint", {"subnetIds": ["a", "a"]}, "non-unique"),
        ("aws:ecr/repository:Repository", {"imageTagMutability": "SOMETIMES"}, "is not one of"),
    ],
)
def test_wrong_arguments_are_found(token: str, given: dict[str, Any], said: str) -> None:
    kind = TYPES[token]
    assert said in "\n".join(problems(kind.cfn, properties(kind.args, given, schemas.schema(kind.cfn))))


def test_an_unknown_argument_is_found() -> None:
    with pytest.raises(KeyError, match="colour"):
        properties(TYPES["aws:sqs/queue:Queue"].args, {"colour": "red"}, schemas.schema("AWS::SQS::Queue"))
