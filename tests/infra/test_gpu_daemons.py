"""Device plugin and dcgm-exporter: on every node of the pool from its first minute, and nowhere else."""

from typing import Any

import pytest

from srvmod.infra import versions
from srvmod.infra.aws.cluster import ADDON_CONFIGURATION
from srvmod.infra.platform.documents import dcgm_exporter, pool
from srvmod.infra.platform.documents.device_plugin import device_plugin
from srvmod.infra.render.recorder import Recorded
from tests.infra.environment import graph
from tests.infra.test_documents import POOL

DAEMONS = {
    "device plugin": device_plugin(POOL.name, "r/plugin:1"),
    "dcgm-exporter": dcgm_exporter.daemon_set(POOL.name, "r/dcgm:1", annotated=True),
}


def pod(name: str) -> dict[str, Any]:
    return DAEMONS[name]["spec"]["template"]["spec"]


def tolerated(tolerations: list[dict[str, str]], taint: dict[str, str]) -> bool:
    """As the scheduler matches them."""
    return any(
        (t.get("operator") == "Exists" and t.get("key") in (None, taint["key"]))
        or (t.get("key"), t.get("value")) == (taint["key"], taint["value"])
        for t in tolerations
        if t.get("effect") in (None, taint["effect"])
    )


@pytest.mark.parametrize("name", DAEMONS)
def test_daemons_run_on_the_pool_also_before_its_weights(name: str) -> None:
    template = pool.node_pool(POOL)["spec"]["template"]
    assert pod(name)["nodeSelector"].items() <= template["metadata"]["labels"].items()
    for taint in (*template["spec"]["taints"], *template["spec"]["startupTaints"]):
        assert tolerated(pod(name)["tolerations"], taint), taint


@pytest.mark.parametrize("name", DAEMONS)
def test_daemons_leave_exclusive_cpus_alone(name: str) -> None:
    """A Guaranteed pod with whole CPUs would take some from an island."""
    for container in pod(name)["containers"]:
        assert "cpu" not in container["resources"]["limits"]
    assert pod(name)["priorityClassName"] == "system-node-critical"


def test_the_node_monitoring_agents_engine_runs_on_the_pool_too() -> None:
    """The exporter asks it, and the agent takes its absence for broken hardware."""
    template = pool.node_pool(POOL)["spec"]["template"]["spec"]
    tolerations = ADDON_CONFIGURATION["eks-node-monitoring-agent"]["dcgmAgent"]["tolerations"]
    for taint in (*template["taints"], *template["startupTaints"]):
        assert tolerated(tolerations, taint), taint


def test_the_exporter_has_no_rights_and_asks_the_nodes_engine() -> None:
    (container,) = pod("dcgm-exporter")["containers"]
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert "privileged" not in container["securityContext"]
    assert '-r "$HOST_IP:5555"' in container["command"][-1]
    assert {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}} in container["env"]
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert f"-f {mounted['counters']}/{next(iter(dcgm_exporter.config_map()['data']))}" in container["command"][-1]


def test_counters_are_a_table_that_holds_g_1() -> None:
    rows = [line.split(", ", 2) for line in dcgm_exporter.counters_csv().splitlines()]
    fields = [field for field, _, _ in rows]
    assert {kind for _, kind, _ in rows} == {"gauge", "counter"}
    assert len(set(fields)) == len(fields)
    assert all("," not in text for _, _, text in rows)
    assert {f"DCGM_FI_DEV_NVLINK_ERROR_DL_{kind}" for kind in ("CRC", "RECOVERY", "REPLAY")} <= set(fields)
    assert not any("_PROF_" in field for field in fields), "profiling fields have one reader per node"


def test_changed_counters_restart_the_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = DAEMONS["dcgm-exporter"]["spec"]["template"]["metadata"]["annotations"]
    monkeypatch.setattr(dcgm_exporter, "COUNTERS", dcgm_exporter.COUNTERS[:-1])
    after = dcgm_exporter.daemon_set(POOL.name, "r/dcgm:1", annotated=True)
    assert after["spec"]["template"]["metadata"]["annotations"] != before


def of_kind(env: str, kind: str) -> list[Recorded]:
    return [found for found in graph(env).of_type(kind) if found.name.startswith("dcgm-exporter")]


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
def test_prometheus_finds_the_exporter(env: str) -> None:
    """By a PodMonitor where its operator is installed, by annotations where it may have none."""
    (exporter,) = of_kind(env, "kubernetes:apps/v1:DaemonSet")
    monitors = of_kind(env, "kubernetes:monitoring.coreos.com/v1:PodMonitor")
    annotated = "prometheus.io/scrape" in exporter.inputs["spec"]["template"]["metadata"]["annotations"]
    installed = any(found.name == "prometheus-kube-prometheus-stack" for found in graph(env).resources.values())
    assert (len(monitors), annotated) == ((1, False) if installed else (0, True))
    for monitor in monitors:
        assert any("prometheus" in dependency for dependency in monitor.dependencies)
        ports = [port["name"] for port in exporter.inputs["spec"]["template"]["spec"]["containers"][0]["ports"]]
        assert [point["port"] for point in monitor.inputs["spec"]["podMetricsEndpoints"]] == ports


def test_simulated_stacks_have_neither() -> None:
    names = {resource.name for resource in graph("local").of_type("kubernetes:apps/v1:DaemonSet")}
    assert names == {"weight-cache"}


def test_what_is_pulled_is_pinned_by_digest() -> None:
    for image in (versions.NVIDIA_DEVICE_PLUGIN, versions.DCGM_EXPORTER, versions.ENVOY, versions.ENVOY_GATEWAY_IMAGE):
        assert image.reference.startswith(f"{image.tagged}@sha256:")
        assert len(image.reference.rpartition(":")[2]) == 64
