"""Charts that lie in a Go module: helm takes our values, the charts know each of them, and what comes out is ours."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from srvmod.infra import versions
from srvmod.infra.labels import NODES_LABEL, SYSTEM_NODES
from srvmod.infra.platform.documents import charts
from srvmod.tools import chart_dir
from tests.infra.chart_rendering import CHARTS, RELEASE, Helm, rendered, template, values_of
from tests.infra.environment import graph, settings_of

pytestmark = pytest.mark.filterwarnings("ignore:.*has been deprecated in favor of:DeprecationWarning")
ENVIRONMENTS = ("prod",)
"""Environments give the charts names of their own, nothing else, so one is templated."""
OWN = (versions.KARPENTER.name, versions.ENVOY_GATEWAY.name)
"""Charts that get values of ours."""
MIRROR = "mirror.example/path"
MIRRORED = {
    versions.KARPENTER.name: charts.karpenter("c", "q", "karpenter", isolated=True, registry=MIRROR),
    versions.ENVOY_GATEWAY.name: charts.envoy_gateway(f"{MIRROR}/envoyproxy/gateway:v1@sha256:{'0' * 64}"),
}
FREE_FORM = ("nodeSelector", "resources", "annotations", "labels", "affinity")
"""Maps whose keys Kubernetes or the user defines, not the chart, whatever the chart's example in them is."""


def known(chart: Path) -> dict[str, Any]:
    """A chart's values, with each subchart's own below its name; `global` reaches all of them."""
    values = yaml.safe_load((chart / "values.yaml").read_text(encoding="utf-8")) or {}
    for dependency in yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8")).get("dependencies", []):
        below = known(chart / "charts" / dependency["name"])
        name = dependency.get("alias", dependency["name"])
        values[name] = {**below, **values.get(name, {})}
        values["global"] = {**below.get("global", {}), **values.get("global", {})}
    return values


def unknown(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Keys of ours that a chart doesn't have. An empty map of theirs takes any key, as do those of FREE_FORM."""
    if not isinstance(ours, dict) or theirs == {} or path.rstrip(".").rpartition(".")[2] in FREE_FORM:
        return []
    if not isinstance(theirs, dict):
        return [f"{path}* (the chart has {theirs!r}, no map)"] if theirs is not None else []
    found: list[str] = []
    for key, value in ours.items():
        found += unknown(value, theirs[key], f"{path}{key}.") if key in theirs else [f"{path}{key}"]
    return found


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("name", OWN)
def test_the_chart_has_every_key(name: str, env: str) -> None:
    assert unknown(values_of(env, name), known(chart_dir(name))) == []
    assert unknown(MIRRORED[name], known(chart_dir(name))) == []


def test_an_unknown_key_is_noticed() -> None:
    theirs = {"a": {"x": 1}, "free": {}, "nodeSelector": {"os": "linux"}, "n": 1, "unset": None}
    ours = {"a": {"b": 1}, "c": 2, "free": {"y": 1}, "nodeSelector": {"z": 1}, "n": {"m": 1}, "unset": {"k": 1}}
    assert unknown(ours, theirs) == ["a.b", "c", "n.* (the chart has 1, no map)"]


def test_keys_of_subcharts_are_compared_with_the_subcharts(tmp_path: Path) -> None:
    for folder, values in ((tmp_path, {"crds": {"enabled": True}}), (tmp_path / "charts/crds", {"gatewayAPI": {}})):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "values.yaml").write_text(yaml.safe_dump(values))
        (folder / "Chart.yaml").write_text("name: x\n")
    (tmp_path / "Chart.yaml").write_text("dependencies: [{name: crds}]\n")
    ours = {"crds": {"enabled": False, "gatewayAPI": {"safe": True}, "nothing": 1}}
    assert unknown(ours, known(tmp_path)) == ["crds.nothing"]


def leaves(values: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(values, dict):
        for key, value in values.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, values


def changed(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """The values with another one in one place."""
    new = copy.deepcopy(values)
    place = new
    for key in path[:-1]:
        place = place[key]
    old = place[path[-1]]
    place[path[-1]] = not old if isinstance(old, bool) else old + 1 if isinstance(old, int) else f"{old}x"
    return new


@pytest.mark.parametrize("name", OWN)
def test_every_value_has_an_effect(name: str) -> None:
    """A key that a chart lists but no longer reads is as lost as one that it never had."""
    base = template(name, MIRRORED[name], crds=False)
    assert base.problem == ""
    dead = [
        ".".join(path)
        for path, _ in leaves(MIRRORED[name])
        if template(name, changed(MIRRORED[name], path), crds=False) == base
    ]
    assert dead == []


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("name", CHARTS)
def test_helm_templates_the_chart(name: str, env: str) -> None:
    found = rendered(env, name)
    assert found.problem == ""
    assert found.objects
    assert all(len(json.dumps(item)) < 1_000_000 for item in found.objects), "etcd takes no larger object"


def test_a_chart_that_refuses_its_values_is_noticed() -> None:
    refused = template(versions.KARPENTER.name, {"settings": "none"})
    assert refused.problem
    assert refused.objects == ()


def deployment(found: Helm, name: str) -> dict[str, Any]:
    return next(item for item in found.of_kind("Deployment") if item["metadata"]["name"] == name)


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_karpenter_is_told_of_cluster_queue_and_gates(env: str) -> None:
    found = rendered(env, versions.KARPENTER.name)
    pod = deployment(found, "karpenter")["spec"]["template"]["spec"]
    variables = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
    assert variables["CLUSTER_NAME"] == settings_of(env).cluster_name
    (queue,) = graph(env).of_type("aws:sqs/queue:Queue")
    assert variables["INTERRUPTION_QUEUE"] == queue.inputs["name"]
    gates = dict(gate.split("=") for gate in str(variables["FEATURE_GATES"]).split(","))
    assert (gates["ReservedCapacity"], gates["NodeRepair"]) == ("true", "false")
    accounts = [association.inputs for association in graph(env).of_type(
        "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    )]  # fmt: skip
    assert pod["serviceAccountName"] in {
        account["serviceAccount"] for account in accounts if account["namespace"] == "kube-system"
    }


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("name", OWN)
def test_controllers_run_twice_on_system_nodes(name: str, env: str) -> None:
    for item in rendered(env, name).of_kind("Deployment"):
        assert item["spec"]["replicas"] == 2
        assert item["spec"]["template"]["spec"]["nodeSelector"][NODES_LABEL] == SYSTEM_NODES
    assert rendered(env, name).of_kind("PodDisruptionBudget")


def images(found: Helm) -> set[str]:
    """Images of all pods, and of those that Envoy Gateway starts later."""
    pods = [item["spec"]["template"]["spec"] for item in found.of_kind("Deployment") + found.of_kind("Job")]
    names = {container["image"] for pod in pods for container in pod["containers"] + pod.get("initContainers", [])}
    for item in found.of_kind("ConfigMap"):
        for text in item["data"].values():
            helper = yaml.safe_load(text).get("provider", {}).get("kubernetes", {}).get("shutdownManager", {})
            names |= {helper["image"]} if helper else set()
    return names


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.parametrize("name", OWN)
def test_controllers_images_are_pinned_by_digest(name: str, env: str) -> None:
    assert images(rendered(env, name))
    assert all("@sha256:" in image for image in images(rendered(env, name)))


@pytest.mark.parametrize("name", OWN)
def test_a_mirror_serves_every_image(name: str) -> None:
    assert {image.startswith(f"{MIRROR}/") for image in images(template(name, MIRRORED[name]))} == {True}


MONITORS = ("serviceMonitor", "podMonitor", "rule")
UNSEEN_KEYS = {
    "aws-load-balancer-controller": {
        *("image.repository", "clusterName", "region", "vpcTags.*", "serviceAccount.name"),
        *("enableShield", "enableWaf", "enableWafv2", "nodeSelector.*"),
    },
    "keda": {"global.image.registry", "nodeSelector.*"},
    "kube-prometheus-stack": {
        *("global.imageRegistry", "grafana.enabled"),
        *(f"{hidden}.enabled" for hidden in ("kubeControllerManager", "kubeEtcd", "kubeProxy", "kubeScheduler")),
        *(f"prometheus.prometheusSpec.{kind}SelectorNilUsesHelmValues" for kind in MONITORS),
        *("prometheus.prometheusSpec.nodeSelector.*", "alertmanager.alertmanagerSpec.nodeSelector.*"),
    },
}  # fmt: skip
"""Values of charts that no test can read, each looked up at charts.UNSEEN."""


@pytest.mark.parametrize("name", UNSEEN_KEYS)
def test_values_of_charts_that_cant_be_read_are_few_and_listed(name: str) -> None:
    given = {
        "aws-load-balancer-controller": charts.load_balancer_controller(
            "c", "r", "a", {"vpcTags": {"Name": "v"}}, registry=MIRROR
        ),
        "keda": charts.keda(registry=MIRROR),
        "kube-prometheus-stack": charts.prometheus_stack(registry=MIRROR),
    }
    keys = {".".join(path) for path, _ in leaves(given[name])}
    maps = {key.removesuffix("*") for key in UNSEEN_KEYS[name] if key.endswith("*")}
    shown = {next((f"{free}*" for free in maps if key.startswith(free)), key) for key in keys}
    assert shown == UNSEEN_KEYS[name]
    assert charts.UNSEEN[name].startswith("https://github.com/")


def test_environments_differ_in_names_only() -> None:
    for name in (*CHARTS, *charts.UNSEEN):
        shapes = [sorted(path for path, _ in leaves(values_of(env, name))) for env in ("dev", "staging", "prod")]
        assert shapes[0] == shapes[1] == shapes[2]


def test_every_chart_is_either_templated_or_listed() -> None:
    declared = {release.inputs["name"] for release in graph("prod").of_type(RELEASE)}
    assert declared == {*CHARTS, *charts.UNSEEN}
