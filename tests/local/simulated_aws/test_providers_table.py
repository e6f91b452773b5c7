"""The table against its sources: AWS's schemas, botocore's models and Pulumi's own SDK."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name

from srvmod.local.providers.aws import schemas
from srvmod.local.providers.aws.base import Arg, Resource
from srvmod.local.providers.aws.registry import TYPES

SDK = Path(find_spec("pulumi_aws").submodule_search_locations[0])  # type: ignore[union-attr,index]


def module_of(token: str) -> Path:
    """aws:ec2/routeTable:RouteTable -> pulumi_aws/ec2/route_table.py"""
    folder, name = token.split(":")[1].split("/")
    snake = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
    return SDK / folder / f"{snake}.py"


def properties(token: str) -> tuple[set[str], set[str]]:
    """(arguments, output-only properties) of Pulumi's class, by wire names."""
    text = module_of(token).read_text()
    wire = {py: name for name, py in re.findall(r'@pulumi\.getter\(name="(\w+)"\)\s+def (\w+)', text)}
    body = re.search(r"def _internal_init.*?super\(", text, re.S)
    assert body is not None
    found = re.findall(r'__props__\.__dict__\["(\w+)"\] = (.+)', body[0])
    names = {py: value != "None" for py, value in found}
    return {wire.get(n, n) for n, given in names.items() if given}, {wire.get(n, n) for n, g in names.items() if not g}


EVERY = [pytest.param(kind, id=token.split(":")[-1]) for token, kind in sorted(TYPES.items())]


@pytest.mark.parametrize("kind", EVERY)
def test_arguments_are_those_of_pulumis_class(kind: Resource) -> None:
    arguments, _ = properties(kind.token)
    assert set(kind.args) <= arguments


@pytest.mark.parametrize("kind", EVERY)
def test_every_output_is_either_given_or_named_as_absent(kind: Resource) -> None:
    """So that a program that reads an output finds it here, or its author finds it in the list of absent ones."""
    arguments, only = properties(kind.token)
    outputs = only - {"tagsAll", "region"}
    named = {*kind.outputs, *kind.absent}
    assert outputs <= named | {_camel(n) for n in named}, outputs - named
    assert set(kind.outputs) <= only | arguments
    assert "tagsAll" not in only or "tags" in kind.args


def _camel(name: str) -> str:
    return re.sub(r"([A-Z])", lambda m: f"_{m[1].lower()}", name)


@pytest.mark.parametrize("kind", EVERY)
def test_every_mapped_property_exists_in_awss_schema(kind: Resource) -> None:
    assert [path for path in _paths(kind.args, "") if not schemas.property_schema(kind.cfn, path)] == []


def _paths(args: Mapping[str, Arg], at: str) -> Iterator[str]:
    for arg in args.values():
        if arg.cfn:
            yield f"{at}{arg.cfn}"
            if arg.of:
                yield from _paths(arg.of, f"{at}{arg.cfn}/")


@lru_cache
def operations(service: str) -> frozenset[str]:
    """The names of a service's operations, as boto3 has them."""
    names: Any = botocore.session.get_session().get_service_model(service).operation_names
    return frozenset(map(xform_name, names))


@pytest.mark.parametrize("kind", EVERY)
def test_every_operation_that_a_type_calls_exists(kind: Resource) -> None:
    """`aws("ec2", "create_vpc", ...)` in its module names an operation of botocore."""
    spec = find_spec(type(kind).__module__)
    assert spec is not None
    assert spec.origin is not None
    for node in ast.walk(ast.parse(Path(spec.origin).read_text())):
        match node:
            case ast.Call(func=ast.Name(id="aws"), args=[ast.Constant(value=service), ast.Constant(value=call), *_]):
                assert call in operations(service), f"{service}.{call}"


@pytest.mark.parametrize(
    ("token", "argument", "replaces"),
    [
        ("aws:ec2/vpc:Vpc", "cidrBlock", True),
        ("aws:ec2/vpc:Vpc", "enableDnsHostnames", False),
        ("aws:eks/cluster:Cluster", "version", False),
        ("aws:eks/cluster:Cluster", "name", True),
        ("aws:eks/nodeGroup:NodeGroup", "instanceTypes", True),
        ("aws:eks/addon:Addon", "addonVersion", False),
        ("aws:sqs/queue:Queue", "messageRetentionSeconds", False),
        ("aws:s3/bucketVersioning:BucketVersioning", "bucket", True),
    ],
)
def test_replacement_follows_awss_create_only_properties(token: str, argument: str, replaces: bool) -> None:
    assert TYPES[token].changes({argument: "a"}, {argument: "b"}) == {argument: replaces}


def test_a_nested_create_only_property_replaces_by_itself() -> None:
    kind = TYPES["aws:eks/cluster:Cluster"]
    network = {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.96.0.0/16"}}
    other = {"kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.97.0.0/16"}}
    assert kind.changes(network, other) == {"kubernetesNetworkConfig.serviceIpv4Cidr": True}
    assert kind.changes({}, network) == {"kubernetesNetworkConfig": True}
    access = {"accessConfig": {"authenticationMode": "API"}}
    both = {"accessConfig": {"authenticationMode": "API_AND_CONFIG_MAP"}}
    assert kind.changes(access, both) == {"accessConfig.authenticationMode": False}


def test_order_and_spelling_that_mean_nothing_change_nothing() -> None:
    endpoint, role = TYPES["aws:ec2/vpcEndpoint:VpcEndpoint"], TYPES["aws:iam/role:Role"]
    assert endpoint.changes({"subnetIds": ["a", "b"]}, {"subnetIds": ["b", "a"]}) == {}
    assert role.changes({"assumeRolePolicy": '{"a": 1, "b": 2}'}, {"assumeRolePolicy": '{"b":2,"a":1}'}) == {}
    assert role.changes({"assumeRolePolicy": '{"a": 1}'}, {"assumeRolePolicy": '{"a": 2}'}) == {
        "assumeRolePolicy": False
    }


@pytest.mark.parametrize(
    ("token", "props", "said"),
    [
        ("aws:ec2/vpc:Vpc", {"cidrBlock": "10.0.0.0/16", "ipv4IpamPoolId": "x"}, "ipv4IpamPoolId isn't handled"),
        ("aws:ec2/vpc:Vpc", {}, "cidrBlock is required"),
        ("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", {"accessScope": {"kind": "x"}},
         "accessScope.kind isn't handled"),
        ("aws:sqs/queue:Queue", {"messageRetentionSeconds": 1209601}, None),
        ("aws:eks/nodeGroup:NodeGroup", {"capacityType": "CHEAP"}, None),
        ("aws:iam/policy:Policy", {"policy": "{"}, "policy isn't JSON"),
        ("aws:ecr/repository:Repository", {"imageTagMutability": "SOMETIMES"},
         "imageTagMutability 'SOMETIMES' isn't one of MUTABLE, IMMUTABLE"),
        ("aws:cloudwatch/logGroup:LogGroup", {"retentionInDays": 8}, "retentionInDays 8 isn't one of 1, 3, 5"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_named_with_what_is_allowed(token: str, props: dict[str, Any], said: str | None) -> None:
    found = [f"{path} {reason}" for path, reason in TYPES[token].problems(props)]
    if said is not None:
        assert any(f.startswith(said) for f in found), found
