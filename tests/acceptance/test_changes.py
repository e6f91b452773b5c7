"""Change safety: one deployment, a preview for each changed setting, and its end. SRVMOD_FULL=1 takes them in turn.

What replaces is said by AWS's own resource schemas, which the simulated provider reads, and for objects in the cluster
by the real Kubernetes provider.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from srvmod.infra import identifiers
from srvmod.infra.render.environments import graph_of
from srvmod.infra.settings import Settings, load_stack_file
from srvmod.local.aws.journal import Journal
from tests.acceptance.changes import (
    CHARTS,
    MUTABLE,
    PROMETHEUS,
    REPLACING,
    Case,
    Sections,
    deployed_form,
)
from tests.acceptance.deployment import PLAN_TOKEN, Deployment, deployed

pytestmark = [
    pytest.mark.acceptance,
]
FULL = bool(os.environ.get("SRVMOD_FULL"))
KEPT = (
    "aws:ec2/vpc:Vpc",
    "aws:eks/cluster:Cluster",
    "aws:sqs/queue:Queue",
    "aws:s3/bucket:Bucket",
    "kubernetes:karpenter.sh/v1:NodePool",
    "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass",
)
"""What no change may replace or delete, whatever its case says."""


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    with deployed("dev", tmp_path_factory.mktemp("changes"), deployed_form) as (found, _):
        yield found


def kind_of(step: dict[str, Any]) -> str:
    return step["urn"].split("::")[2].rpartition("$")[2]


def because(step: dict[str, Any]) -> str:
    """Resource and property of a step, for people."""
    details = [path for path, diff in (step.get("detailedDiff") or {}).items() if diff["kind"].endswith("replace")]
    properties = step.get("replaceReasons") or details or step.get("diffReasons") or ["?"]
    return f"{step['op']} {kind_of(step)} {step['urn'].rpartition('::')[2]} because of {', '.join(properties)}"


def unexpected(steps: list[dict[str, Any]], case: Case | None = None) -> list[str]:
    """Replacements that a case doesn't name, and anything done to what is kept but an update."""
    allowed = case.replaces if case else tuple(kind for one in MUTABLE for kind in one.replaces)
    found = []
    for step in steps:
        replaced = "replace" in step["op"] and kind_of(step) not in allowed
        if replaced or (kind_of(step) in KEPT and step["op"] not in {"update", "same"}):
            found.append(because(step))
    return found


def with_clients(deployment: Deployment, case: Case) -> None:
    """Keys come before clients, as docs/first-day.md says."""
    keys = {name: f"key-of-{name}-0123456789" for name in case.clients or deployment.settings.gateway.api_clients}
    deployment.client("secretsmanager").put_secret_value(
        SecretId=identifiers.api_keys_secret(deployment.settings), SecretString=json.dumps(keys)
    )


def with_secret_of(deployment: Deployment, settings: Settings) -> None:
    """The keys of a stack whose name, and with it its secret's, has changed."""
    client, name = deployment.client("secretsmanager"), identifiers.api_keys_secret(settings)
    if name not in [secret["Name"] for secret in client.list_secrets()["SecretList"]]:
        keys = {one: f"key-of-{one}-0123456789" for one in settings.gateway.api_clients}
        client.create_secret(Name=name, SecretString=json.dumps(keys))


def test_a_replacement_is_noticed_and_named() -> None:
    step = {
        "op": "replace",
        "urn": "urn:pulumi:dev::srvmod::srvmod:aws:Network$aws:ec2/vpc:Vpc::network",
        "replaceReasons": ["cidrBlock"],
    }
    assert unexpected([step]) == ["replace aws:ec2/vpc:Vpc network because of cidrBlock"]
    assert unexpected([{**step, "op": "update"}]) == []
    assert unexpected([{**step, "op": "delete"}]) != []


def test_nothing_changes_without_a_change(deployment: Deployment) -> None:
    assert [because(step) for step in deployment.preview(lambda sections: None)] == []


def test_a_plan_role_sees_whether_there_is_drift_and_changes_nothing(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As drift.yml and deploy.yml's plan run, with the rights that the program gives `cluster.planRoles`."""
    monkeypatch.setitem(deployment.variables, "SRVMOD_LOCAL_TOKEN_FILE", str(deployment.folder / PLAN_TOKEN))
    drift = deployment.pulumi("preview", "--stack", "dev", "--refresh", "--expect-no-changes", check=False)
    assert drift.returncode == 0, drift.stdout[-4000:] + drift.stderr[-4000:]

    def change(sections: Sections) -> None:
        sections["gateway"]["maxStreamSeconds"] = 300

    changed = {kind_of(step) for step in deployment.preview(change)}
    assert any(kind.startswith("kubernetes:") for kind in changed), "a dry run that is forbidden isn't needed"
    refused = deployment.pulumi("up", "--stack", "dev", "--yes", "--skip-preview",
                                config=deployment.changed(change), check=False)  # fmt: skip
    assert refused.returncode != 0
    assert "forbidden" in refused.stdout + refused.stderr


def test_all_mutable_settings_at_once(deployment: Deployment) -> None:
    def change(sections: Sections) -> None:
        for case in MUTABLE:
            if not case.alone:
                case.apply(sections)

    steps = deployment.preview(change)
    assert unexpected(steps) == []
    changed = {kind_of(step) for step in steps}
    assert changed >= {*KEPT} - {"aws:s3/bucket:Bucket", "aws:sqs/queue:Queue"}, "the change didn't reach them at all"


@pytest.mark.skipif(not FULL, reason="SRVMOD_FULL=1: a preview for each setting takes most of an hour on two cores")
@pytest.mark.parametrize("case", MUTABLE, ids=lambda case: case.path)
def test_a_mutable_setting_replaces_nothing_else(deployment: Deployment, case: Case) -> None:
    with_clients(deployment, case)
    try:
        steps = deployment.preview(case.apply)
    finally:
        with_clients(deployment, Case("", None))
    assert unexpected(steps, case) == []
    replaced = {kind_of(step) for step in steps if "replace" in step["op"]}
    assert replaced == set(case.replaces)


@pytest.mark.parametrize("case", REPLACING if FULL else REPLACING[:1], ids=lambda case: case.path)
def test_a_replacing_setting_is_refused_where_the_cluster_is_protected(deployment: Deployment, case: Case) -> None:
    with_secret_of(deployment, load_stack_file(deployment.changed(case.apply)))
    with pytest.raises(AssertionError) as refused:
        deployment.preview(case.apply)
    told = str(refused.value)
    assert "protect" in told, told
    assert any(kind in told for kind in case.replaces), told


@pytest.mark.parametrize("path", CHARTS)
def test_installing_a_controller_only_adds(path: str, tmp_path: Path) -> None:
    """Recorded without the engine, which would have to fetch the chart."""
    root = Path(__file__).parents[2]
    text = (root / "Pulumi.dev.yaml").read_text(encoding="utf-8")
    key = path.rpartition(".")[2]
    file = tmp_path / "Pulumi.dev.yaml"
    more = f"  srvmod:charts: {{{key}: existing}}\n"
    if key == "prometheusStack":
        more += f'  srvmod:monitoring: {{address: "{PROMETHEUS}"}}\n'
    file.write_text(text.replace("config:\n", f"config:\n{more}", 1), encoding="utf-8")
    without, installed = graph_of(load_stack_file(file)), graph_of(load_stack_file(root / "Pulumi.dev.yaml"))
    assert set(without.resources) < set(installed.resources)
    changed = [urn for urn, found in without.resources.items() if found.inputs != installed.resources[urn].inputs]
    assert [urn for urn in changed if without.resources[urn].type in KEPT] == []


def test_a_saved_plan_takes_protection_away_and_destroying_leaves_nothing(deployment: Deployment) -> None:
    """Last in this file: afterwards nothing is deployed."""

    def unprotected(sections: Sections) -> None:
        sections["cluster"]["deletionProtection"] = False
        # EKS takes no minimum above the desired size, and no second group of one name.
        sections["cluster"]["systemNodes"] = {"instanceType": "m7i.2xlarge", "count": 3}

    (before,) = node_groups(deployment)
    file, plan = deployment.changed(unprotected), str(deployment.folder / "plan.json")
    deployment.pulumi("preview", "--stack", "dev", "--save-plan", plan, config=file)
    deployment.pulumi("up", "--stack", "dev", "--plan", plan, "--yes", "--skip-preview", config=file)
    (after,) = node_groups(deployment)
    assert (after["instanceTypes"], after["scalingConfig"]["minSize"]) == (["m7i.2xlarge"], 3)
    told = calls(deployment)
    made = [i for i, call in enumerate(told) if call == "POST /clusters/srvmod-dev/node-groups"]
    assert made[-1] < told.index(f"DELETE /clusters/srvmod-dev/node-groups/{before['nodegroupName']}")
    assert_only_named_principals(deployment)
    deployment.pulumi("destroy", "--yes", "--skip-preview", "--stack", "dev")
    exported = json.loads(deployment.pulumi("stack", "export", "--stack", "dev").stdout)
    assert exported["deployment"].get("resources", []) in ([], None)
    assert left_in(deployment) == {}
    _in_order(calls(deployment)[len(told) :])


def node_groups(deployment: Deployment) -> list[dict[str, Any]]:
    """Managed node groups of the cluster."""
    eks, name = deployment.client("eks"), deployment.settings.cluster_name
    names = eks.list_nodegroups(clusterName=name)["nodegroups"]
    return [eks.describe_nodegroup(clusterName=name, nodegroupName=one)["nodegroup"] for one in names]


def assert_only_named_principals(deployment: Deployment) -> None:
    """The cluster lets in those that settings name, and its nodes; its maker is one of the former."""
    settings = deployment.settings
    found = deployment.client("eks").list_access_entries(clusterName=settings.cluster_name)["accessEntries"]
    named = {*(admin.principal_arn for admin in settings.cluster.admins), *settings.cluster.plan_roles}
    assert named <= set(found)
    assert all(":role/srvmod-dev-" in arn for arn in set(found) - named), found


def left_in(deployment: Deployment) -> dict[str, list[str]]:
    """What the account still holds of the stack's, by kind. People's roles and the keys' secret were there before."""
    settings, ec2 = deployment.settings, deployment.client("ec2")
    name = settings.cluster_name
    principals = (*(admin.principal_arn for admin in settings.cluster.admins), *settings.cluster.plan_roles)
    people = {arn.rpartition("/")[2] for arn in principals}
    tagged = [{"Name": "tag-key", "Values": ["srvmod.dev/environment"]}]
    found = {
        "vpcs": [vpc["VpcId"] for vpc in ec2.describe_vpcs(Filters=tagged)["Vpcs"]],
        "subnets": [subnet["SubnetId"] for subnet in ec2.describe_subnets(Filters=tagged)["Subnets"]],
        "endpoints": [
            endpoint["VpcEndpointId"]
            for endpoint in ec2.describe_vpc_endpoints(Filters=tagged)["VpcEndpoints"]
            if endpoint["State"] not in {"deleted", "deleting"}
        ],
        "addresses": [address["AllocationId"] for address in ec2.describe_addresses()["Addresses"]],
        "NAT gateways": [
            gateway["NatGatewayId"]
            for gateway in ec2.describe_nat_gateways()["NatGateways"]
            if gateway["State"] not in {"deleted", "deleting"}
        ],
        "instances": [
            instance["InstanceId"]
            for reservation in ec2.describe_instances()["Reservations"]
            for instance in reservation["Instances"]
            if instance["State"]["Name"] != "terminated"
        ],
        "load balancers": [
            lb["LoadBalancerArn"] for lb in deployment.client("elbv2").describe_load_balancers()["LoadBalancers"]
        ],
        "clusters": deployment.client("eks").list_clusters()["clusters"],
        "buckets": [bucket["Name"] for bucket in deployment.client("s3").list_buckets()["Buckets"]],
        "queues": deployment.client("sqs").list_queues().get("QueueUrls", []),
        "repositories": [r["repositoryName"] for r in deployment.client("ecr").describe_repositories()["repositories"]],
        "rules": [rule["Name"] for rule in deployment.client("events").list_rules()["Rules"]],
        "roles": [
            role["RoleName"]
            for role in deployment.client("iam").list_roles()["Roles"]
            if role["RoleName"].startswith(name) and role["RoleName"] not in people
        ],
        "key aliases": [
            alias["AliasName"]
            for alias in deployment.client("kms").list_aliases()["Aliases"]
            if name in alias["AliasName"]
        ],
    }
    return {kind: things for kind, things in found.items() if things}


def calls(deployment: Deployment) -> list[str]:
    """Every call that changed the account, in order: EC2's and ELB's by action, EKS's by method and path."""
    told = []
    for record in Journal(deployment.folder / "aws.journal").records():
        method, path = record.environ["REQUEST_METHOD"], record.environ["PATH_INFO"]
        action = next((p for p in record.body.decode(errors="replace").split("&") if p.startswith("Action=")), "")
        told.append(action.removeprefix("Action=") or f"{method} {path}")
    return told


def _in_order(told: list[str]) -> None:
    """Load balancers before subnets, nodes before the cluster, the cluster before its network."""

    def last(call: str) -> int:
        return max(index for index, found in enumerate(told) if found == call)

    def first(call: str) -> int:
        return min(index for index, found in enumerate(told) if found == call)

    cluster = last("DELETE /clusters/srvmod-dev")
    nodes = [index for index, call in enumerate(told) if call.startswith("DELETE /clusters/srvmod-dev/node-groups/")]
    assert last("TerminateInstances") < cluster
    assert last("TerminateInstances") < min(nodes), "system nodes carry Karpenter, which terminates the pool's"
    assert max(nodes) < cluster
    assert last("DeleteLoadBalancer") < first("DeleteSubnet")
    assert cluster < first("DeleteSubnet") < first("DeleteVpc")
    assert cluster < first("DeleteVpcEndpoints"), "pods and nodes need AWS until they are gone"
