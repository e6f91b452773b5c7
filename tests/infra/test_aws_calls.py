"""Every call by which the program's AWS resources are made, against the services' own models (botocore's).

The recorded graph is made in a simulated account through the simulated provider, in the order of its dependencies. Each
call's parameters are compared with the operation's shape: enums, patterns, lengths and ranges, which botocore itself
leaves to the service (names, types and required parameters it checks before it sends).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
import regex
from boto3.session import Session
from moto.core.base_backend import BackendDict
from pulumi import ResourceOptions, ResourceTransformArgs

from srvmod.infra.aws.access import without_hidden_admin
from srvmod.infra.render.recorder import Graph, Recorded
from srvmod.local.aws.serve import serve
from tests.infra.aws_template import PLACEHOLDER
from tests.infra.environment import graph, settings_of
from tests.local.simulated_aws import conftest as simulated

CLUSTER = "eks:index:Cluster"
HIDDEN_ADMIN = "bootstrapClusterCreatorAdminPermissions"
Outputs = dict[str, dict[str, Any]]


def against(shape: Any, value: Any, at: str) -> Iterator[str]:
    """What a shape has against a value, at any depth."""
    if shape.type_name == "structure":
        for name, inner in value.items():
            yield from against(shape.members[name], inner, f"{at}.{name}")
        return
    if shape.type_name == "list":
        for index, inner in enumerate(value):
            yield from against(shape.member, inner, f"{at}[{index}]")
    if shape.type_name == "map":
        for key, inner in value.items():
            yield from against(shape.key, key, f"{at} key {key}")
            yield from against(shape.value, inner, f"{at}.{key}")
    rules = shape.metadata
    size = value if shape.type_name in {"integer", "long", "float", "double"} else None
    if shape.type_name in {"string", "list", "map"}:
        size = len(value)
    if size is not None and not rules.get("min", size) <= size <= rules.get("max", size):
        yield f"{at}: {size} isn't {rules.get('min')} to {rules.get('max')}"
    if shape.type_name == "string":
        if rules.get("enum") and value not in rules["enum"]:
            yield f"{at}: {value!r} isn't one of {rules['enum']}"
        if rules.get("pattern") and not regex.fullmatch(rules["pattern"], value, flags=regex.DOTALL):
            yield f"{at}: {value!r} doesn't match {rules['pattern']}"


class Account:
    """A simulated account in which a graph is made."""

    def __init__(self, recorded: Graph, engine: simulated.Engine) -> None:
        self.graph, self.engine = recorded, engine
        self.outputs: Outputs = {}

    def make(self) -> None:
        """Everything, each after what it depends on."""
        waiting = {r.urn: r for r in self.graph.resources.values() if r.type.startswith("aws:") or r.type == CLUSTER}
        while waiting:
            ready = [r for r in waiting.values() if not self._needs(r) & set(waiting)]
            assert ready, sorted(waiting)
            for resource in sorted(ready, key=lambda r: r.urn):
                self._one(resource)
                del waiting[resource.urn]

    def _needs(self, resource: Recorded) -> set[str]:
        clusters = {r.urn for r in self.graph.of_type(CLUSTER)} if resource.type.startswith("aws:eks/") else set()
        return {*resource.dependencies, *clusters} - {resource.urn}

    def _one(self, resource: Recorded) -> None:
        if resource.type == CLUSTER:
            self.outputs[resource.urn] = self._cluster(resource)
            return
        made = self.engine.create(resource.type, resource.name, self._inputs(resource))
        self.outputs[resource.urn] = {**made["state"], "id": made["id"]}

    def _cluster(self, resource: Recorded) -> dict[str, Any]:
        """As the component makes it."""
        inputs = self._inputs(resource)
        given = {
            "name": inputs["name"], "version": inputs["version"], "roleArn": self._role(), "tags": inputs["tags"],
            "vpcConfig": {"subnetIds": inputs["privateSubnetIds"], "endpointPrivateAccess": True,
                          "endpointPublicAccess": inputs["endpointPublicAccess"]},
            "accessConfig": {"authenticationMode": inputs["authenticationMode"], HIDDEN_ADMIN: True},
            "upgradePolicy": inputs["upgradePolicy"],
            "enabledClusterLogTypes": inputs["enabledClusterLogTypes"], "bootstrapSelfManagedAddons": False,
            "deletionProtection": inputs["deletionProtection"],
            "kubernetesNetworkConfig": {"serviceIpv4Cidr": inputs["kubernetesServiceIpAddressRange"]},
            "encryptionConfig": {"provider": {"keyArn": inputs["encryptionConfigKeyArn"]}, "resources": ["secrets"]},
        }  # fmt: skip
        kind = "aws:eks/cluster:Cluster"
        found = without_hidden_admin(ResourceTransformArgs(True, kind, resource.name, given, ResourceOptions()))
        assert found is not None
        made = self.engine.create(kind, resource.name, dict(found.props))
        return {**made["state"], "securityGroupId": made["state"]["vpcConfig"]["clusterSecurityGroupId"]}

    def _role(self) -> str:
        role = next(r for r in self.graph.of_type("aws:iam/role:Role") if r.name == "cluster-control-plane")
        return str(self.outputs[role.urn]["arn"])

    def _inputs(self, resource: Recorded) -> dict[str, Any]:
        request = self.graph.requests[resource.urn]
        found = {}
        for name, value in resource.inputs.items():
            urns = list(request.propertyDependencies[name].urns) if name in request.propertyDependencies else []
            found[name] = self._real(value, urns)
        return found

    def _real(self, value: Any, urns: list[str]) -> Any:
        if isinstance(value, dict):
            return {key: self._real(item, urns) for key, item in value.items()}
        if isinstance(value, list):
            return [self._real(item, urns) for item in value]
        return PLACEHOLDER.sub(lambda m: self._output(m, urns), value) if isinstance(value, str) else value

    def _output(self, match: re.Match[str], urns: list[str]) -> str:
        named = [u for u in urns if u in self.outputs and self.graph.resources[u].name == match[1]]
        found = {str(self.outputs[u][match[2]]) for u in named if match[2] in self.outputs[u]}
        assert len(found) == 1, f"{match[0]}: {found} of {urns}"
        return found.pop()


def test_calls_are_what_the_services_models_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    from srvmod.local.providers.aws.servicer import AwsProvider
    from srvmod.local.providers.values import write

    problems: list[str] = []
    seen: set[str] = set()

    def judge(params: dict[str, Any], model: Any, **_: Any) -> None:
        seen.add(f"{model.service_model.service_name}.{model.name}")
        if model.input_shape is not None:
            problems.extend(against(model.input_shape, params, model.name))

    class Watched(Session):
        """A session whose clients show every call."""

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.events.register("provide-client-params.*.*", judge)

    monkeypatch.setattr("srvmod.local.providers.aws.client.Session", Watched)
    BackendDict.reset()
    server = serve(account=settings_of("prod").aws.account_id, endpoint=simulated.ENDPOINT).start()
    try:
        for name, value in {"ENDPOINT_URL": server.url, "ACCESS_KEY_ID": "AKIATEST", "SECRET_ACCESS_KEY": "s"}.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        from pulumi.runtime.proto import provider_pb2 as pb

        admins = boto3.client("iam", region_name="us-east-1")
        cluster = settings_of("prod").cluster
        # the company's own, there before the stack
        for arn in (*(admin.principal_arn for admin in cluster.admins), *cluster.plan_roles):
            name = arn.rpartition("/")[2]
            admins.create_role(RoleName=name, AssumeRolePolicyDocument=simulated.trust("ec2.amazonaws.com"))
        # One of the admins deploys, as docs/first-day.md says: its entry must not be there already.
        session = boto3.client("sts", region_name="us-east-1").assume_role(
            RoleArn=cluster.admins[0].principal_arn, RoleSessionName="up"
        )["Credentials"]
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", session["AccessKeyId"])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", session["SecretAccessKey"])
        provider = AwsProvider()
        provider.Configure(pb.ConfigureRequest(args=write({"region": "us-east-1"})), simulated.Context())
        account = Account(graph("prod"), simulated.Engine(provider))
        account.make()
    finally:
        server.stop()
    assert len(account.outputs) > 100
    assert {"eks.CreateNodegroup", "ec2.CreateLaunchTemplate", "s3.PutBucketLogging", "sqs.CreateQueue"} <= seen
    assert sorted(set(problems)) == []


def test_a_shape_refuses_what_it_does_not_allow() -> None:
    model = Session(region_name="us-east-1")._session.get_service_model("eks").operation_model("CreateNodegroup")
    given = {
        "clusterName": "c",
        "nodegroupName": "n",
        "capacityType": "CHEAP",
        "diskSize": 0,
        "labels": {"a": "x" * 64},
    }
    found = "\n".join(against(model.input_shape, given, "CreateNodegroup"))
    assert "capacityType: 'CHEAP' isn't one of" in found
    assert "labels.a: 64 isn't 1 to 63" in found
