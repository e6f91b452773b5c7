"""Values for charts: the charts that can be read know each of them, those of the others are few and listed."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from srvmod.infra.platform.documents import charts
from srvmod.tools import chart_dir
from tests.infra.chart_rendering import CHARTS, MIRROR, MIRRORED, OWN, RELEASE, leaves, values_of
from tests.infra.environment import graph

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


@pytest.mark.parametrize("name", OWN)
def test_the_chart_has_every_key(name: str) -> None:
    assert unknown(values_of("prod", name), known(chart_dir(name))) == []
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


PROMETHEUS = {
    *(f"prometheus.prometheusSpec.{key}" for key in ("replicas", "retention", "retentionSize", "resources.*")),
    "prometheus.podDisruptionBudget.enabled",
}
MONITORS = ("serviceMonitor", "podMonitor", "rule")
UNSEEN_KEYS = {
    "aws-load-balancer-controller": {
        *("image.repository", "clusterName", "region", "vpcTags.*", "serviceAccount.name"),
        *("enableShield", "enableWaf", "enableWafv2", "nodeSelector.*"),
    },
    "keda": {
        *("global.image.registry", "nodeSelector.*"),
        *("prometheus.operator.enabled", "prometheus.operator.podMonitor.enabled"),
    },
    "kube-prometheus-stack": {
        *("global.imageRegistry", "grafana.enabled"),
        *PROMETHEUS,
        *(f"{hidden}.enabled" for hidden in ("kubeControllerManager", "kubeEtcd", "kubeProxy", "kubeScheduler")),
        *(f"prometheus.prometheusSpec.{kind}SelectorNilUsesHelmValues" for kind in MONITORS),
        *("prometheus.prometheusSpec.nodeSelector.*", "alertmanager.alertmanagerSpec.nodeSelector.*"),
    },
    "kube-prometheus-stack for Amazon": {
        *("global.imageRegistry", "grafana.enabled", "alertmanager.enabled", "defaultRules.create"),
        *(f"{hidden}.enabled" for hidden in ("kubeControllerManager", "kubeEtcd", "kubeProxy", "kubeScheduler")),
        *(f"prometheus.prometheusSpec.{kind}SelectorNilUsesHelmValues" for kind in MONITORS),
        *("prometheus.prometheusSpec.nodeSelector.*", "prometheus.prometheusSpec.remoteWrite"),
        *("prometheus.prometheusSpec.replicaExternalLabelName", "prometheus.prometheusSpec.externalLabels.*"),
        *PROMETHEUS,
    },
}  # fmt: skip
"""Values of charts that no test can read, each looked up at charts.UNSEEN."""


@pytest.mark.parametrize("name", UNSEEN_KEYS)
def test_values_of_charts_that_cant_be_read_are_few_and_listed(name: str) -> None:
    given = {
        "aws-load-balancer-controller": charts.load_balancer_controller(
            "c", "r", "a", {"vpcTags": {"Name": "v"}}, registry=MIRROR
        ),
        "keda": charts.keda(monitored=True, registry=MIRROR),
        "kube-prometheus-stack": charts.prometheus_stack(registry=MIRROR),
        "kube-prometheus-stack for Amazon": charts.prometheus_stack(
            charts.RemoteWrite("https://w/api/v1/remote_write", "r", "c"), registry=MIRROR
        ),
    }
    keys = {".".join(path) for path, _ in leaves(given[name])}
    maps = {key.removesuffix("*") for key in UNSEEN_KEYS[name] if key.endswith("*")}
    shown = {next((f"{free}*" for free in maps if key.startswith(free)), key) for key in keys}
    assert shown == UNSEEN_KEYS[name]
    assert charts.UNSEEN[name.partition(" ")[0]].startswith("https://github.com/")


def test_environments_differ_in_names_only() -> None:
    for name in (*CHARTS, *charts.UNSEEN):
        shapes = [sorted(path for path, _ in leaves(values_of(env, name))) for env in ("dev", "staging", "prod")]
        assert shapes[0] == shapes[1] == shapes[2]


def test_every_chart_is_either_templated_or_listed() -> None:
    declared = {release.inputs["name"] for release in graph("prod").of_type(RELEASE)}
    assert declared == {*CHARTS, *charts.UNSEEN}
