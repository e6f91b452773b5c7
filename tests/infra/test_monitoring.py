"""Amazon's Prometheus, and one that the stack doesn't run: the same rules and scaler in their forms."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from srvmod.infra.render.manifests import files
from srvmod.infra.render.recorder import Graph
from srvmod.infra.serving.documents import alerts
from srvmod.infra.serving.documents.alert_rules import Fleet
from srvmod.local.providers.aws import schemas
from srvmod.policies.check import check
from srvmod.policies.config import Config
from srvmod.policies.rules.finding import Severity
from tests.infra.environment import graph, settings_of
from tests.infra.test_graph import one
from tests.infra.test_variants import variant

TOPIC = "arn:aws:sns:us-east-1:111122223333:llm-on-call"
RULES = "kubernetes:monitoring.coreos.com/v1:PrometheusRule"
MONITOR = "kubernetes:monitoring.coreos.com/v1:PodMonitor"


@pytest.fixture(scope="module")
def amazon(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder = tmp_path_factory.mktemp("amazon")
    return variant(folder, monitoring={"prometheus": "amazon", "alertTopicArn": TOPIC})


@pytest.fixture(scope="module")
def existing(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return variant(
        tmp_path_factory.mktemp("existing"),
        monitoring={
            "prometheus": "existing",
            "address": "https://prometheus.example.com",
            "alertReceiver": "llm",
            "namespace": "observability",
        },
        charts={"prometheusStack": "existing"},
    )


def fleet(**more: Any) -> Fleet:
    sizing = settings_of("dev").sizing
    return Fleet(sizing.min_engines, sizing.max_engines, **more)


def scaler(found: Graph) -> dict[str, Any]:
    return one(found, "kubernetes:keda.sh/v1alpha1:ScaledObject").inputs["spec"]


def test_amazons_service_gets_rules_and_route(amazon: Graph) -> None:
    rules = one(amazon, "aws:amp/ruleGroupNamespace:RuleGroupNamespace").inputs
    assert yaml.safe_load(rules["data"]) == {"groups": alerts.groups(fleet())}
    assert rules["workspaceId"] == "<metrics-workspace:id>"
    route = one(amazon, "aws:amp/alertManagerDefinition:AlertManagerDefinition").inputs
    assert TOPIC in route["definition"]
    assert amazon.of_type(RULES) == []
    assert amazon.of_type("kubernetes:monitoring.coreos.com/v1alpha1:AlertmanagerConfig") == []
    assert len(amazon.of_type(MONITOR)) == 4, "the cluster's Prometheus collects"


def test_names_are_what_amazon_takes(amazon: Graph) -> None:
    for kind, cfn, name in (
        ("aws:amp/workspace:Workspace", "AWS::APS::Workspace", "Alias"),
        ("aws:amp/ruleGroupNamespace:RuleGroupNamespace", "AWS::APS::RuleGroupsNamespace", "Name"),
    ):
        rule = schemas.schema(cfn)["properties"][name]
        value = one(amazon, kind).inputs[name.lower()]
        assert rule["minLength"] <= len(value) <= rule["maxLength"]


def test_the_collector_writes_and_kedas_operator_asks(amazon: Graph) -> None:
    accounts = {
        (found.inputs["namespace"], found.inputs["serviceAccount"]): found.name
        for found in amazon.of_type("aws:eks/podIdentityAssociation:PodIdentityAssociation")
    }
    assert accounts["monitoring", "kube-prometheus-stack-prometheus"] == "metrics-writer"
    assert accounts["keda", "keda-operator"] == "metrics-reader"
    policies = {found.name: found.inputs["policy"] for found in amazon.of_type("aws:iam/policy:Policy")}
    for part, action in (("metrics-writer", "aps:RemoteWrite"), ("metrics-reader", "aps:QueryMetrics")):
        assert f'"{action}"' in policies[f"{part}-{part}"]
        assert '"<metrics-workspace:arn>"' in policies[f"{part}-{part}"]
    values = one(amazon, "kubernetes:helm.sh/v3:Release", "prometheus-kube-prometheus-stack").inputs["values"]
    [write] = values["prometheus"]["prometheusSpec"]["remoteWrite"]
    assert write["url"] == "<metrics-workspace:prometheusEndpoint>/api/v1/remote_write"
    assert values["alertmanager"] == {"enabled": False}


def test_keda_signs_its_questions_to_amazon(amazon: Graph) -> None:
    for trigger in scaler(amazon)["triggers"]:
        assert trigger["metadata"]["serverAddress"] == "<metrics-workspace:prometheusEndpoint>"
        assert trigger["metadata"]["awsRegion"] == "us-east-1"
    assert one(amazon, "kubernetes:keda.sh/v1alpha1:TriggerAuthentication").inputs["spec"]


def test_an_existing_prometheus_is_told_by_annotations_and_a_rule_file(existing: Graph) -> None:
    [rules] = [
        found.inputs for found in existing.of_type("kubernetes:core/v1:ConfigMap") if found.name == "alerts-rules"
    ]
    [text] = rules["data"].values()
    assert yaml.safe_load(text) == {"groups": alerts.groups(fleet(receiver="llm"))}
    pod = one(existing, "kubernetes:apps/v1:Deployment").inputs["spec"]["template"]["metadata"]["annotations"]
    assert (pod["prometheus.io/scrape"], pod["prometheus.io/port"]) == ("true", "8000")
    assert scaler(existing)["triggers"][0]["metadata"]["serverAddress"] == "https://prometheus.example.com"
    assert existing.of_type(MONITOR) == existing.of_type(RULES) == []


def test_outputs_say_who_watches(amazon: Graph, existing: Graph) -> None:
    own = "monitoring/kube-prometheus-stack"
    assert amazon.outputs["dashboards"] == {
        "kind": "amazon",
        "prometheus": f"{own}-prometheus",
        "alertmanager": None,
        "alertsTo": TOPIC,
        "metricsNamespace": "monitoring",
    }
    assert existing.outputs["dashboards"]["kind"] == "existing"
    assert existing.outputs["dashboards"]["alertsTo"] == "llm"
    assert graph("dev").outputs["dashboards"]["alertmanager"] == f"{own}-alertmanager"


def test_an_operator_needs_no_annotations() -> None:
    pod = one(graph("dev"), "kubernetes:apps/v1:Deployment").inputs["spec"]["template"]["metadata"]["annotations"]
    assert "prometheus.io/scrape" not in pod


@pytest.mark.parametrize("name", ["amazon", "existing"])
def test_rendered_forms_pass_the_gate_and_fail_without_their_rules(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    for path, content in files(request.getfixturevalue(name), "dev").items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(content, encoding="utf-8")
    whole = Config(whole=True)
    assert check([str(tmp_path)], whole).of(Severity.ERROR) == ()
    [rules] = [*tmp_path.glob("prometheus/*.rules.yaml"), *tmp_path.glob("serving/configmap-engine-alerts.yaml")]
    rules.unlink()
    errors = check([str(tmp_path)], whole).of(Severity.ERROR)
    assert {error.what for error in errors} == {"no alert looks at inter-token latency"}


def test_pods_take_scrapes_from_the_existing_ones_namespace(existing: Graph) -> None:
    for name in ("engines-network", "weight-cache-network"):
        policy = str(one(existing, "kubernetes:networking.k8s.io/v1:NetworkPolicy", name).inputs["spec"])
        assert "'kubernetes.io/metadata.name': 'observability'" in policy
        assert "monitoring" not in policy
    assert existing.outputs["dashboards"]["metricsNamespace"] == "observability"
