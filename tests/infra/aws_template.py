"""An environment's AWS resources as AWS's own properties: what CloudFormation would be given.

Which argument is which property is said by the simulated provider's tables, which tests/local/simulated_aws compares
with Pulumi's SDK and AWS's schemas.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from srvmod.infra.render.recorder import Graph, Recorded
from srvmod.local.providers.aws import schemas
from srvmod.local.providers.aws.base import Arg
from srvmod.local.providers.aws.registry import TYPES

PLACEHOLDER = re.compile(r"<([^<>:]+):(\w+)>")
LIKE: Mapping[tuple[str, str], str] = {
    ("aws:kms/key:Key", "arn"): "arn:aws:kms:us-east-1:111122223333:key/01234567-89ab-cdef-0123-456789abcdef",
    ("aws:kms/key:Key", "keyId"): "01234567-89ab-cdef-0123-456789abcdef",
    ("aws:iam/role:Role", "arn"): "arn:aws:iam::111122223333:role/x",
    ("aws:iam/policy:Policy", "arn"): "arn:aws:iam::111122223333:policy/x",
    ("aws:sqs/queue:Queue", "arn"): "arn:aws:sqs:us-east-1:111122223333:x",
    ("aws:sqs/queue:Queue", "url"): "https://sqs.us-east-1.amazonaws.com/111122223333/x",
    ("aws:s3/bucket:Bucket", "arn"): "arn:aws:s3:::x",
    ("aws:cloudwatch/logGroup:LogGroup", "arn"): "arn:aws:logs:us-east-1:111122223333:log-group:x",
    ("aws:ec2/vpc:Vpc", "id"): "vpc-0123456789abcdef0",
    ("aws:ec2/subnet:Subnet", "id"): "subnet-0123456789abcdef0",
    ("aws:ec2/securityGroup:SecurityGroup", "id"): "sg-0123456789abcdef0",
    ("aws:ec2/routeTable:RouteTable", "id"): "rtb-0123456789abcdef0",
    ("aws:ec2/internetGateway:InternetGateway", "id"): "igw-0123456789abcdef0",
    ("aws:ec2/natGateway:NatGateway", "id"): "nat-0123456789abcdef0",
    ("aws:ec2/eip:Eip", "id"): "eipalloc-0123456789abcdef0",
    ("aws:ec2/launchTemplate:LaunchTemplate", "id"): "lt-0123456789abcdef0",
    ("aws:ec2/launchTemplate:LaunchTemplate", "latestVersion"): "1",
    ("eks:index:Cluster", "securityGroupId"): "sg-0123456789abcdef0",
}
"""What an output looks like where a recorded graph has a placeholder, by the type that it comes from."""

ONE_OF_MANY = frozenset({"Queues"})
"""Properties that are lists where Pulumi's type takes one."""

WHOLE = {"AWS::S3::Bucket": "BucketName", "AWS::ECR::Repository": "RepositoryName"}
"""Types that Pulumi splits, with the property by which their parts belong together."""


def resources(graph: Graph) -> list[Recorded]:
    """Everything of AWS in a graph."""
    return [r for r in graph.resources.values() if r.custom and r.type.startswith("aws:")]


def realistic(graph: Graph, resource: Recorded) -> dict[str, Any]:
    """A resource's inputs with values that look like AWS's in place of placeholders."""
    request = graph.requests[resource.urn]
    found = {}
    for name, value in resource.inputs.items():
        urns = request.propertyDependencies[name].urns if name in request.propertyDependencies else ()
        kinds = {graph.resources[urn].type for urn in urns if urn in graph.resources}
        found[name] = _real(value, kinds)
    return found


def _real(value: Any, kinds: set[str]) -> Any:
    if isinstance(value, Mapping):
        return {key: _real(item, kinds) for key, item in value.items()}
    if isinstance(value, list):
        return [_real(item, kinds) for item in value]
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: _like(kinds, match), value)
    return value


def _like(kinds: set[str], match: re.Match[str]) -> str:
    fitting = {LIKE[kind, match[2]] for kind in kinds if (kind, match[2]) in LIKE}
    own = hashlib.sha256(match[1].encode()).hexdigest()[:8]  # lists may have to hold different ids
    return fitting.pop().replace("89abcdef0", f"{own}0") if len(fitting) == 1 else match[0]


def properties_of(graph: Graph, resource: Recorded) -> dict[str, Any]:
    """A resource's properties. Raises KeyError for an argument that the table doesn't know."""
    kind = TYPES[resource.type]
    return properties(kind.args, realistic(graph, resource), schemas.schema(kind.cfn))


def properties(
    args: Mapping[str, Arg], given: Mapping[str, Any], root: Any, rule: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Arguments as the properties of AWS's schema `root`, or of the part `rule` of it."""
    found: dict[str, Any] = {}
    for name, value in given.items():
        arg = args[name]
        if not arg.cfn or value is None:
            continue
        where, target = rule if rule is not None else root, found
        *above, last = arg.cfn.split("/")
        for part in above:
            where = _rule(where, part, root)
            if "items" in where:  # one of several, given as a resource of its own
                where = schemas._resolve(root, where["items"])
                target = target.setdefault(part, [{}])[0]
            else:
                target = target.setdefault(part, {})
        target[last] = _shaped(arg, value, _rule(where, last, root), root)
    return found


def _rule(rule: Mapping[str, Any], name: str, root: Any) -> dict[str, Any]:
    found = schemas._resolve(root, dict(rule).get("properties", {}).get(name, {}))
    assert found, name
    return found


def _shaped(arg: Arg, value: Any, rule: dict[str, Any], root: Any) -> Any:
    kinds = rule.get("type", [])
    a_list = "array" in ([kinds] if isinstance(kinds, str) else kinds)
    items = schemas._resolve(root, rule.get("items", {}))
    if arg.of is not None:
        given = list(value) if isinstance(value, list) else [value]
        blocks = [properties(arg.of, block, root, items if a_list else rule) for block in given]
        return blocks if a_list else blocks[0]
    if isinstance(value, Mapping) and a_list and {"Key", "Value"} <= set(items.get("properties", {})):
        return [{"Key": key, "Value": text} for key, text in value.items()]
    if a_list and arg.cfn in ONE_OF_MANY:
        return [value]
    if value in ("true", "false") and "boolean" in kinds:  # Terraform's way to say that one may be left out
        return value == "true"
    if arg.document and isinstance(value, str) and "object" in kinds:
        return json.loads(value)
    return value


def template(graph: Graph) -> dict[str, Any]:
    """A CloudFormation template of a graph. What Pulumi splits into several resources is one again in it."""
    parts: dict[str, tuple[str, dict[str, Any]]] = {}
    for resource in sorted(resources(graph), key=lambda r: r.urn):
        kind = TYPES[resource.type]
        given = properties_of(graph, resource)
        whole = given.get(WHOLE[kind.cfn]) if kind.cfn in WHOLE else None
        name = f"{kind.cfn}{whole}" if whole else f"{resource.type}{resource.name}"
        _, there = parts.setdefault("".join(c for c in name if c.isalnum()), (kind.cfn, {}))
        there.update(given)
    found = {key: {"Type": cfn, "Properties": given} for key, (cfn, given) in parts.items()}
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": found}
