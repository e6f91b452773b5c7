"""What the charts and our own DaemonSets come to, given to a real API server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from srvmod.infra.labels import KEDA_NAMESPACE, METRICS_NAMESPACE
from srvmod.local.api import condition
from srvmod.tools import kubectl, prometheus_crds
from tests.acceptance.conftest import Stack, eventually
from tests.infra.chart_rendering import CHARTS, NAMESPACES, OWN, Helm, template, values_of
from tests.infra.environment import ROOT

pytestmark = [
    pytest.mark.acceptance,
]
HARMLESS = {"ServiceAccount", "ConfigMap", "Role", "RoleBinding", "Service", "PodDisruptionBudget", "Deployment", "Job"}
"""Kinds that are applied for good, in a namespace of the test's own. Webhooks, admission policies and cluster roles
would reach beyond it."""


def apply(stack: Stack, objects: list[dict[str, Any]], *options: str) -> subprocess.CompletedProcess[str]:
    """`kubectl apply` on the server side; unknown and repeated fields are errors."""
    documents = "\n---\n".join(json.dumps(item) for item in objects)
    return subprocess.run(
        [
            *(str(kubectl()), "apply", "--server-side", "--force-conflicts", "--field-manager=charts-test"),
            *("--validate=strict", *options, "-f", "-"),
        ],
        env=stack.env(),
        input=documents,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )


def dry_run(stack: Stack, objects: list[dict[str, Any]]) -> None:
    """Every object passes the API server's schemas, defaults, admission and conversion; nothing is kept."""
    result = apply(stack, objects, "--dry-run=server")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("(server dry run)") == len(objects), result.stdout


@pytest.fixture(scope="module")
def namespaces(stack: Stack) -> Iterator[None]:
    """The namespaces that charts are installed into, as far as the stack hasn't them."""
    there = {item["metadata"]["name"] for item in stack.get("namespaces")["items"]}
    made = sorted({*NAMESPACES.values(), KEDA_NAMESPACE, METRICS_NAMESPACE} - there)
    for name in made:
        stack.kubectl("create", "namespace", name)
    yield
    for name in made:
        stack.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module", params=OWN)
def installed(stack: Stack, request: pytest.FixtureRequest) -> Iterator[tuple[str, Helm]]:
    """A chart's harmless objects, applied in a namespace of their own, which goes afterwards."""
    name = f"try-{request.param}"
    found = template(request.param, values_of("prod", request.param), crds=False, namespace=name)
    assert found.problem == ""
    stack.kubectl("create", "namespace", name)
    try:
        own = [item for item in found.objects if item["metadata"].get("namespace") == name]
        result = apply(stack, [item for item in own if item["kind"] in HARMLESS])
        assert result.returncode == 0, result.stderr
        yield name, found
    finally:
        stack.kubectl("delete", "namespace", name, "--wait=false")


@pytest.mark.parametrize("chart", CHARTS)
def test_the_api_server_takes_every_object_of_a_chart(stack: Stack, chart: str, namespaces: None) -> None:
    found = template(chart, values_of("prod", chart))
    assert found.problem == ""
    dry_run(stack, list(found.objects))


def test_a_chart_with_a_wrong_field_is_refused(stack: Stack, namespaces: None) -> None:
    (deployment,) = template(OWN[0], values_of("prod", OWN[0]), crds=False).of_kind("Deployment")
    deployment["spec"]["replica"] = 2
    result = apply(stack, [deployment], "--dry-run=server")
    assert result.returncode == 1
    assert 'unknown field "spec.replica"' in result.stderr or ".spec.replica" in result.stderr, result.stderr


def test_applied_controllers_get_their_pods(stack: Stack, installed: tuple[str, Helm]) -> None:
    """Admission lets the pods in and the scheduler looks only for system nodes, of which this stack has none."""
    namespace, found = installed
    (deployment,) = found.of_kind("Deployment")
    name = deployment["metadata"]["name"]
    selector = ",".join(f"{key}={value}" for key, value in deployment["spec"]["selector"]["matchLabels"].items())

    def pods() -> list[dict[str, Any]]:
        listed = stack.get("-n", namespace, "pods", "-l", selector)["items"]
        return listed if len(listed) == 2 and all(reason(pod) == "Unschedulable" for pod in listed) else []

    eventually(f"{name} has two pods that wait for a system node", 60, pods)
    budget = found.of_kind("PodDisruptionBudget")[0]["metadata"]["name"]
    status = eventually(
        "the budget counts them", 30, lambda: stack.get("-n", namespace, "pdb", budget)["status"].get("expectedPods")
    )
    assert status == 2


def reason(pod: dict[str, Any]) -> str:
    """Why the pod isn't scheduled."""
    found = [c for c in pod.get("status", {}).get("conditions", []) if c["type"] == "PodScheduled"]
    return str(found[0].get("reason", "")) if found else ""


def test_nothing_of_a_chart_starts_a_p5(stack: Stack, installed: tuple[str, Helm]) -> None:
    claims = stack.get("nodeclaims")["items"]
    requested = {claim["metadata"]["labels"]["karpenter.sh/nodepool"] for claim in claims}
    assert requested <= {"p5-tp4"}
    events = stack.get("-n", installed[0], "events")["items"]
    assert not [event for event in events if event["reason"] == "Nominated"], events


@pytest.fixture(scope="module")
def alert_receivers(stack: Stack) -> Iterator[None]:
    """The definition of AlertmanagerConfig, of which a local stack has no object."""
    (definition,) = prometheus_crds(("alertmanagerconfigs",))
    stack.kubectl("apply", "--server-side", "-f", str(definition))
    name = "customresourcedefinition/alertmanagerconfigs.monitoring.coreos.com"
    # `kubectl wait` gives up on an object whose conditions are still null
    eventually("AlertmanagerConfig", 60, lambda: condition(stack.get(name), "Established"))
    yield
    stack.kubectl("delete", "-f", str(definition))


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
@pytest.mark.usefixtures("namespaces", "alert_receivers")
def test_the_api_server_takes_our_rendered_objects(stack: Stack, env: str) -> None:
    """Device plugin, dcgm-exporter, engines, routes: what `srvmod render` has written, but for secrets' masks."""
    objects: list[dict[str, Any]] = []
    for file in sorted((ROOT / "manifests" / env).rglob("*.yaml")):
        if file.parent.name != "charts":
            item = yaml.safe_load(file.read_text(encoding="utf-8"))
            if item["kind"] != "Secret":
                objects.append(item)
    kinds = {(item["kind"], item["metadata"]["name"]) for item in objects}
    assert {("DaemonSet", "nvidia-device-plugin"), ("DaemonSet", "dcgm-exporter"), ("Deployment", "engine")} <= kinds
    dry_run(stack, objects)
