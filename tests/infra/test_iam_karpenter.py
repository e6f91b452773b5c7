"""Karpenter's policies judged by the very calls that Karpenter makes, for its own cluster and for others.

Calls and their tags: karpenter-provider-aws 1.14.0, pkg/aws/sdk.go, pkg/utils/utils.go (GetTags), pkg/providers,
pkg/controllers/nodeclaim/tagging. Reads are recorded from the running controller (karpenter_calls.json; an acceptance
test compares). Which kinds of resources a call is judged for: AWS's service authorization reference, as cfn-lint
ships it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import cfnlint
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from srvmod.infra.aws.documents import karpenter
from srvmod.infra.aws.names import Account
from tests.infra.policy_evaluator import Request, Resource, allowed, refused

ID, REGION, CLUSTER, ROLE, QUEUE = "111122223333", "us-east-1", "srvmod-prod", "srvmod-prod-node", "srvmod-prod-queue"
DOCUMENTS = list(karpenter.controller_policies(Account(ID, REGION), CLUSTER, ROLE, QUEUE).values())
CALLS = json.loads((Path(__file__).parent / "karpenter_calls.json").read_text())

OTHER = "srvmod-dev"


def tags(cluster: str = CLUSTER) -> dict[str, str]:
    """What Karpenter puts on what it launches, with the node class's own tags."""
    return {
        "Name": f"{cluster}-p5-tp4",
        "srvmod.dev/environment": "prod",
        f"kubernetes.io/cluster/{cluster}": "owned",
        "karpenter.sh/nodepool": "p5-tp4",
        "eks:eks-cluster-name": cluster,
        "karpenter.k8s.aws/ec2nodeclass": "p5-tp4",
    }


def profile_tags(cluster: str = CLUSTER, region: str = REGION) -> dict[str, str]:
    """What Karpenter puts on instance profiles."""
    own = {key: value for key, value in tags(cluster).items() if key != "karpenter.sh/nodepool"}
    return {**own, "topology.kubernetes.io/region": region}


def ec2(kind: str, name: str = "x-0123456789abcdef0", owner: str = ID, region: str = REGION) -> str:
    return f"arn:aws:ec2:{region}:{owner}:{kind}/{name}"


def requested(given: Mapping[str, str]) -> dict[str, str | list[str]]:
    """Condition keys of a request that sets tags."""
    return {**{f"aws:RequestTag/{key}": value for key, value in given.items()}, "aws:TagKeys": list(given)}


def here(**more: str | list[str]) -> dict[str, str | list[str]]:
    return {"aws:RequestedRegion": REGION, **more}


TEMPLATE = Resource(ec2("launch-template"), tags())
FOUND = [Resource(ec2("image", owner="")), Resource(ec2("subnet")), Resource(ec2("capacity-reservation"))]
"""What a launch uses: found by its selectors, nobody's tags asked for."""
MADE = {
    "ec2:CreateFleet": ["fleet", "instance", "volume"],
    "ec2:RunInstances": ["instance", "volume", "network-interface"],
}
"""What comes into being. An instant fleet runs instances in the name of its caller, who needs both."""


def launch(action: str, cluster: str = CLUSTER, template: Resource = TEMPLATE) -> Request:
    made = [Resource(ec2(kind, "*")) for kind in MADE[action]]
    more = [Resource(ec2("snapshot", owner="")), Resource(ec2("security-group"))] if "Run" in action else []
    return Request(action, [*made, *FOUND, *more, template], here(**requested(tags(cluster))))


def create_tags(kind: str, action: str | None, given: Mapping[str, str], existing: Mapping[str, str]) -> Request:
    context = here(**requested(given))
    if action:
        context["ec2:CreateAction"] = action
    return Request("ec2:CreateTags", [Resource(ec2(kind), existing)], context)


def profile(action: str, owner: str = CLUSTER, region: str = REGION, **context: Any) -> Request:
    arn = f"arn:aws:iam::{ID}:instance-profile/karpenter/{region}/{owner}/0f0f/{owner}_1234567890"
    existing = {} if action == "iam:CreateInstanceProfile" else profile_tags(owner, region)
    return Request(action, [Resource(arn, existing)], context)


AFTERWARDS = {"Name": "ip-10-0-0-1", "karpenter.sh/nodeclaim": "p5-tp4-abcde", "eks:eks-cluster-name": CLUSTER}
QUEUE_ARN = f"arn:aws:sqs:{REGION}:{ID}:{QUEUE}"
AMI = f"arn:aws:ssm:{REGION}::parameter/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia/x/image_id"

WRITES: dict[str, Request] = {
    "CreateFleet": launch("ec2:CreateFleet"),
    "RunInstances": launch("ec2:RunInstances"),
    "CreateLaunchTemplate": Request(
        "ec2:CreateLaunchTemplate", [Resource(ec2("launch-template", "*"))], here(**requested(tags()))
    ),
    **{
        f"CreateTags of {kind} by {action}": create_tags(kind, action, tags(), {})
        for action, kinds in {
            "CreateFleet": ["fleet"],
            "RunInstances": ["instance", "volume", "network-interface"],
            "CreateLaunchTemplate": ["launch-template"],
        }.items()
        for kind in kinds
    },
    "CreateTags of a registered node": create_tags("instance", None, AFTERWARDS, tags()),
    "TerminateInstances": Request("ec2:TerminateInstances", [Resource(ec2("instance"), tags())], here()),
    "DeleteLaunchTemplate": Request("ec2:DeleteLaunchTemplate", [TEMPLATE], here()),
    "PassRole": Request(
        "iam:PassRole", [Resource(f"arn:aws:iam::{ID}:role/{ROLE}")], {"iam:PassedToService": "ec2.amazonaws.com"}
    ),
    "CreateInstanceProfile": profile("iam:CreateInstanceProfile", **requested(profile_tags())),
    "TagInstanceProfile": profile("iam:TagInstanceProfile", **requested(profile_tags())),
    "AddRoleToInstanceProfile": profile("iam:AddRoleToInstanceProfile"),
    "RemoveRoleFromInstanceProfile": profile("iam:RemoveRoleFromInstanceProfile"),
    "DeleteInstanceProfile": profile("iam:DeleteInstanceProfile"),
}
"""Every call that changes something."""

READS: dict[str, Request] = {
    "eks:DescribeCluster": Request(
        "eks:DescribeCluster", [Resource(f"arn:aws:eks:{REGION}:{ID}:cluster/{CLUSTER}")], here()
    ),
    "iam:GetInstanceProfile": profile("iam:GetInstanceProfile"),
    "iam:ListInstanceProfiles": Request("iam:ListInstanceProfiles", [Resource("*")]),
    "pricing:GetProducts": Request("pricing:GetProducts", [Resource("*")]),
    "ssm:GetParameter": Request("ssm:GetParameter", [Resource(AMI)], here()),
    "sqs:GetQueueUrl": Request("sqs:GetQueueUrl", [Resource(QUEUE_ARN)], here()),
    "sqs:ReceiveMessage": Request("sqs:ReceiveMessage", [Resource(QUEUE_ARN)], here()),
    "sqs:DeleteMessage": Request("sqs:DeleteMessage", [Resource(QUEUE_ARN)], here()),
}
"""Reads with resources of their own; EC2's Describe calls have none."""


def read(call: str) -> Request:
    return READS.get(call) or Request(call, [Resource("*")], here())


@pytest.mark.parametrize("name", WRITES)
def test_every_write_is_allowed(name: str) -> None:
    assert refused(DOCUMENTS, WRITES[name]) == []


@pytest.mark.parametrize("call", sorted({*CALLS["recorded"], *CALLS["seldom"]}))
def test_every_other_call_of_the_controller_is_allowed(call: str) -> None:
    requests = [request for request in WRITES.values() if request.action == call] or [read(call)]
    assert all(allowed(DOCUMENTS, request) for request in requests)


def test_exactly_what_the_controller_calls_is_granted() -> None:
    granted = {
        action for document in DOCUMENTS for statement in document["Statement"] for action in statement["Action"]
    }
    called = {*CALLS["recorded"], *CALLS["seldom"], *(request.action for request in WRITES.values())}
    assert granted == called


FOREIGN = Resource(ec2("launch-template"), tags(OTHER))
REFUSED: dict[str, Request] = {
    "launch for another cluster": launch("ec2:CreateFleet", OTHER),
    "launch from another cluster's template": launch("ec2:RunInstances", template=FOREIGN),
    "launch without the pool's tag": Request(
        "ec2:RunInstances",
        [Resource(ec2("instance", "*"))],
        here(**requested({k: v for k, v in tags().items() if k != "karpenter.sh/nodepool"})),
    ),
    "launch in another region": Request(
        "ec2:RunInstances", [Resource(ec2("instance", "*", region="us-west-2"))], here(**requested(tags()))
    ),
    "launch template of another cluster": Request(
        "ec2:CreateLaunchTemplate", [Resource(ec2("launch-template", "*"))], here(**requested(tags(OTHER)))
    ),
    "terminate another cluster's instance": Request(
        "ec2:TerminateInstances", [Resource(ec2("instance"), tags(OTHER))], here()
    ),
    "terminate an instance of nobody": Request("ec2:TerminateInstances", [Resource(ec2("instance"))], here()),
    "terminate own and another's": Request(
        "ec2:TerminateInstances",
        [Resource(ec2("instance", "i-1"), tags()), Resource(ec2("instance", "i-2"), tags(OTHER))],
        here(),
    ),
    "terminate a system node": Request(
        "ec2:TerminateInstances",
        [Resource(ec2("instance"), {f"kubernetes.io/cluster/{CLUSTER}": "owned", "eks:nodegroup-name": "system"})],
        here(),
    ),
    "delete another cluster's template": Request("ec2:DeleteLaunchTemplate", [FOREIGN], here()),
    "delete a subnet": Request("ec2:DeleteSubnet", [Resource(ec2("subnet"), tags())], here()),
    "take an instance over by tags": create_tags("instance", None, tags(), tags(OTHER)),
    "take a foreign instance over": create_tags("instance", None, AFTERWARDS, {}),
    "change an own instance's owner": create_tags("instance", None, tags(OTHER), tags()),
    "name another cluster on an own instance": create_tags(
        "instance", None, {**AFTERWARDS, "eks:eks-cluster-name": OTHER}, tags()
    ),
    "tag a subnet": create_tags("subnet", None, AFTERWARDS, tags()),
    "tag a new instance for another cluster": create_tags("instance", "RunInstances", tags(OTHER), {}),
    "pass another role": Request(
        "iam:PassRole",
        [Resource(f"arn:aws:iam::{ID}:role/{OTHER}-node")],
        {"iam:PassedToService": "ec2.amazonaws.com"},
    ),
    "pass the node role to another service": Request(
        "iam:PassRole", [Resource(f"arn:aws:iam::{ID}:role/{ROLE}")], {"iam:PassedToService": "lambda.amazonaws.com"}
    ),
    "profile for another cluster": profile("iam:CreateInstanceProfile", OTHER, **requested(profile_tags(OTHER))),
    "profile for another region": profile("iam:CreateInstanceProfile", **requested(profile_tags(region="us-west-2"))),
    "role into another cluster's profile": profile("iam:AddRoleToInstanceProfile", OTHER),
    "role into another region's profile": profile("iam:AddRoleToInstanceProfile", region="us-west-2"),
    "delete another cluster's profile": profile("iam:DeleteInstanceProfile", OTHER),
    "take another cluster's profile over": profile("iam:TagInstanceProfile", OTHER, **requested(profile_tags())),
    "read another queue": Request(
        "sqs:ReceiveMessage", [Resource(f"arn:aws:sqs:{REGION}:{ID}:{OTHER}-interruption")], here()
    ),
    "send to the queue": Request("sqs:SendMessage", [Resource(QUEUE_ARN)], here()),
    "read a parameter of the company": Request(
        "ssm:GetParameter", [Resource(f"arn:aws:ssm:{REGION}:{ID}:parameter/aws/service/x")], here()
    ),
    "describe another cluster": Request(
        "eks:DescribeCluster", [Resource(f"arn:aws:eks:{REGION}:{ID}:cluster/{OTHER}")], here()
    ),
    "look into another region": Request("ec2:DescribeInstances", [Resource("*")], {"aws:RequestedRegion": "us-west-2"}),
    "create a role": Request("iam:CreateRole", [Resource(f"arn:aws:iam::{ID}:role/x")]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_clusters_and_other_things_are_out_of_reach(name: str) -> None:
    assert not allowed(DOCUMENTS, REFUSED[name])


@given(st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=20), max_size=4))
@settings(max_examples=60, deadline=None)
def test_no_tags_but_the_clusters_own_open_an_instance(others: dict[str, str]) -> None:
    others.pop(f"kubernetes.io/cluster/{CLUSTER}", None)
    foreign = Resource(ec2("instance"), {**others, "karpenter.sh/nodepool": "p5-tp4"})
    for action in ("ec2:TerminateInstances", "ec2:CreateTags"):
        assert not allowed(DOCUMENTS, Request(action, [foreign], here(**{"aws:TagKeys": ["Name"]})))


@cache
def reference() -> dict[str, Any]:
    file = Path(cfnlint.__file__).parent / "data" / "AdditionalSpecs" / "Policies.json"
    return json.loads(file.read_bytes())


@pytest.mark.parametrize("name", WRITES)
def test_writes_are_judged_for_kinds_of_resources_that_aws_judges(name: str) -> None:
    """Without this a request here could leave out what AWS looks at, or look at what doesn't count."""
    request = WRITES[name]
    service, action = request.action.split(":")
    kinds = set(reference()[service]["Actions"][action.lower()]["Resources"])
    for resource in request.resources:
        kind = resource.arn.split(":", 5)[5].split("/")[0]
        assert kind in kinds, f"{kind}: {request.action} is judged for {sorted(kinds)}"
