"""Choices that no shipped environment makes: an existing VPC, no NAT, mirrors, TLS at the load balancer."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from srvmod.infra.aws.needs import account_needs
from srvmod.infra.aws.network import interface_endpoints
from srvmod.infra.render.environments import graph_of
from srvmod.infra.render.recorder import Graph
from srvmod.infra.settings import NatGateways, PrometheusKind, Settings, load_stack_file
from tests.infra.environment import ROOT, settings_of
from tests.infra.test_graph import one


def variant(tmp_path: Path, **changes: dict[str, Any]) -> Graph:
    """The graph of dev with sections changed; a value of None takes a key away."""
    document = yaml.safe_load((ROOT / "Pulumi.dev.yaml").read_text(encoding="utf-8"))
    for name, section in changes.items():
        config = document["config"].setdefault(f"srvmod:{name}", {})
        config.update(section)
        for key in [key for key, value in config.items() if value is None]:
            del config[key]
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return graph_of(load_stack_file(file))


def test_an_existing_vpc_gets_discovery_tags_and_nothing_else(tmp_path: Path) -> None:
    subnets = [f"subnet-0123456789abcde{index}" for index in range(3)]
    existing = {"vpcId": "vpc-0123456789abcdef0", "privateSubnetIds": subnets}
    graph = variant(tmp_path, network={"existing": existing})
    in_network = [resource for resource in graph.resources.values() if "srvmod:aws:Network$" in resource.urn]
    assert {resource.type for resource in in_network} == {"aws:ec2/tag:Tag"}
    assert {resource.inputs["resourceId"] for resource in in_network} == set(subnets)
    cluster = one(graph, "eks:index:Cluster").inputs
    assert cluster["vpcId"] == existing["vpcId"]
    assert cluster["privateSubnetIds"] == subnets
    values = one(graph, "kubernetes:helm.sh/v3:Release", "load-balancer-controller-aws-load-balancer-controller")
    assert values.inputs["values"]["vpcId"] == existing["vpcId"]


def test_without_nat_nothing_leads_out(tmp_path: Path) -> None:
    mirror = "111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror"
    graph = variant(
        tmp_path,
        network={"natGateways": "none"},
        images={"registry": mirror},
        charts={"repository": f"oci://{mirror}/charts"},
        engine={"image": f"{mirror}/vllm/vllm-openai:v0.33.0"},
    )
    for kind in ("aws:ec2/internetGateway:InternetGateway", "aws:ec2/natGateway:NatGateway", "aws:ec2/route:Route"):
        assert graph.of_type(kind) == []
    spec = one(graph, "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass").inputs["spec"]
    profile = one(graph, "aws:iam/instanceProfile:InstanceProfile").inputs
    assert "role" not in spec, "Karpenter would ask IAM, which has no endpoint, for a profile"
    assert spec["instanceProfile"] == profile["name"]
    services = {endpoint.inputs["serviceName"] for endpoint in graph.of_type("aws:ec2/vpcEndpoint:VpcEndpoint")}
    near = {"s3", "sts", "eks-auth", "ssmmessages"}
    assert {f"com.amazonaws.us-east-1.{name}" for name in near} <= services
    assert "com.amazonaws.us-east-1.sns" not in services
    releases = {release.inputs["name"]: release.inputs for release in graph.of_type("kubernetes:helm.sh/v3:Release")}
    assert releases["karpenter"]["values"]["settings"]["isolatedVPC"] is True
    assert all(release["chart"].startswith(f"oci://{mirror}/charts/") for release in releases.values())
    for resource in graph.resources.values():
        if resource.type.startswith("kubernetes:") and resource.type != "kubernetes:helm.sh/v3:Release":
            assert "docker.io/" not in str(resource.inputs), resource.urn
            assert "nvcr.io/" not in str(resource.inputs), resource.urn


def test_without_nat_what_monitoring_calls_has_endpoints() -> None:
    settings = settings_of("staging")
    isolated = settings.network.model_copy(update={"nat_gateways": NatGateways.NONE})
    amazon = settings.monitoring.model_copy(update={"prometheus": PrometheusKind.AMAZON, "alert_topic_arn": "arn"})
    sections = {name: getattr(settings, name) for name in Settings.model_fields}
    alone = Settings.model_construct(**{**sections, "network": isolated, "monitoring": amazon})
    assert {*interface_endpoints(alone)} - {*interface_endpoints(settings)} == {"ssmmessages", "aps-workspaces", "sns"}


def test_a_single_nat_serves_all_zones(tmp_path: Path) -> None:
    graph = variant(tmp_path, network={"natGateways": "single"})
    assert len(graph.of_type("aws:ec2/natGateway:NatGateway")) == 1
    out = [route for route in graph.of_type("aws:ec2/route:Route") if "natGatewayId" in route.inputs]
    assert len(out) == 3


def test_a_certificate_moves_tls_to_the_load_balancer(tmp_path: Path) -> None:
    arn = "arn:aws:acm:us-east-1:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef"
    graph = variant(tmp_path, gateway={"tlsSecret": None, "certificateArn": arn})
    listener = one(graph, "kubernetes:gateway.networking.k8s.io/v1:Gateway").inputs["spec"]["listeners"][0]
    assert (listener["protocol"], listener["port"]) == ("HTTP", 443)
    assert arn in str(one(graph, "kubernetes:gateway.envoyproxy.io/v1alpha1:EnvoyProxy").inputs)


def test_existing_charts_are_not_installed(tmp_path: Path) -> None:
    graph = variant(tmp_path, charts={"loadBalancerController": "existing", "keda": "existing"})
    names = {release.inputs["name"] for release in graph.of_type("kubernetes:helm.sh/v3:Release")}
    assert not names & {"aws-load-balancer-controller", "keda"}
    assert not [resource for resource in graph.resources.values() if "LoadBalancerIdentity" in resource.type]


def test_reservations_reach_the_node_class(tmp_path: Path) -> None:
    by_id = {"id": "cr-0123456789abcdef0", "zone": "us-east-1a", "kind": "onDemand"}
    by_tags = {"tags": {"purpose": "llm", "team": "*"}, "kind": "block"}
    graph = variant(tmp_path, pool={"reservations": [by_id, by_tags]})
    spec = one(graph, "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass").inputs["spec"]
    assert spec["capacityReservationSelectorTerms"] == [{"id": by_id["id"]}, {"tags": by_tags["tags"]}]


def test_weights_of_a_stack_that_drafts_must_have_the_folder_that_its_engines_name(tmp_path: Path) -> None:
    graph = variant(tmp_path, engine={"speculation": {"method": "draft_model", "draftFolder": "small-1b"}})
    engine = str(one(graph, "kubernetes:apps/v1:Deployment").inputs)
    revision = load_stack_file(tmp_path / "Pulumi.dev.yaml").model.revision
    assert f"/models/{revision}/small-1b" in engine
    cache = one(graph, "kubernetes:apps/v1:DaemonSet", "weight-cache").inputs["spec"]["template"]["spec"]
    variables = {entry["name"]: entry.get("value") for entry in cache["containers"][0]["env"]}
    assert variables["REQUIRED"] == "config.json *.safetensors small-1b/config.json small-1b/*.safetensors"
    needs = account_needs(load_stack_file(tmp_path / "Pulumi.dev.yaml"), "digest")
    assert " ".join(needs.weights.required) == variables["REQUIRED"]


@pytest.mark.parametrize("env", ["local", "dev", "staging", "prod"])
def test_weights_must_have_a_models_files(env: str) -> None:
    assert account_needs(settings_of(env), "digest").weights.required == ("config.json", "*.safetensors")
