"""Places and waits: system nodes hold what documents ask for, and no limit is shorter than what it waits for."""

import re
from typing import Any

import pytest

from srvmod.contract import system_node
from srvmod.infra import draining, footprint
from srvmod.infra.platform.documents import charts, gateway
from srvmod.infra.settings import SettingsError, load
from tests.infra.bad_configs.base import changed
from tests.infra.chart_rendering import template, values_of
from tests.infra.environment import graph, settings_of
from tests.infra.test_graph import one

MIB = {"Mi": 1, "Gi": 1024}


def asked(resources: dict[str, Any]) -> tuple[int, int]:
    """CPU in thousandths and memory in MiB of requests."""
    cpu, memory = str(resources["requests"]["cpu"]), str(resources["requests"]["memory"])
    millis = int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000
    return millis, int(memory[:-2]) * MIB[memory[-2:]]


def test_envoy_and_karpenter_ask_for_what_is_counted() -> None:
    spec = gateway.envoy_proxy(gateway.Gateway("serving", 2, "e:1", "LoadBalancer"))["spec"]["provider"]["kubernetes"]
    cpu, memory = asked(spec["envoyDeployment"]["container"]["resources"])
    assert (footprint.ENVOY.cpu_millis, footprint.ENVOY.memory_mib) == (cpu + 10, memory + 32)
    karpenter = charts.karpenter("c", "q", "a", isolated=False, wait_seconds=120)
    assert (footprint.KARPENTER.cpu_millis, footprint.KARPENTER.memory_mib) == asked(
        karpenter["controller"]["resources"]
    )
    assert (footprint.PROMETHEUS.cpu_millis, footprint.PROMETHEUS.memory_mib) == asked(
        dict(charts.PROMETHEUS_RESOURCES)
    )


def test_envoy_gateways_chart_asks_for_what_is_counted() -> None:
    (deployment,) = template("gateway-helm", values_of("prod", "gateway-helm"), crds=False).of_kind("Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    counted = footprint.ENVOY_GATEWAY
    assert asked(container["resources"]) == (counted.cpu_millis, counted.memory_mib)
    assert deployment["spec"]["replicas"] == footprint.ENVOY_GATEWAY_REPLICAS


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
def test_each_environments_controllers_fit(env: str) -> None:
    node = system_node(settings_of(env).cluster.system_nodes.instance_type)
    assert node is not None, "the rule can't judge it"


def test_one_envoy_fits_a_node_and_two_dont() -> None:
    node = system_node("m7i.xlarge")
    assert node is not None
    assert footprint.fits([footprint.ENVOY] * 2, 2, node.cpu_millis, node.memory_mib)
    assert not footprint.fits([footprint.ENVOY] * 3, 2, node.cpu_millis, node.memory_mib)
    assert not footprint.fits([footprint.KARPENTER] * 2, 1, node.cpu_millis, node.memory_mib), "they keep apart"
    assert footprint.fits([footprint.KEDA] * 20, 1, node.cpu_millis, node.memory_mib)


@pytest.mark.parametrize(
    "changes",
    [
        {"gateway.replicas": 3, "cluster.systemNodes": {"count": 3}},
        {"gateway.replicas": 3, "cluster.systemNodes": {"instanceType": "m7i.2xlarge"}},
        {"gateway.replicas": 9, "cluster.systemNodes": {"instanceType": "m9z.xlarge"}},
    ],
    ids=["a node more", "larger nodes", "a type that isn't known"],
)
def test_places_that_are_there(changes: dict[str, Any]) -> None:
    load(changed(changes), stack="case")


def test_a_prometheus_elsewhere_is_named_where_it_is_not_ours() -> None:
    more = {"charts.prometheusStack": "existing", "monitoring.address": "http://p.observability.svc:9090"}
    assert load(changed({**more, "monitoring.namespace": "observability"}), stack="case").monitoring.namespace
    with pytest.raises(SettingsError, match=r"monitoring\.namespace"):
        load(changed({"monitoring.namespace": "observability"}), stack="case")


def test_an_update_of_envoy_needs_no_place_more() -> None:
    def rolling(replicas: int) -> Any:
        proxy = gateway.envoy_proxy(gateway.Gateway("serving", replicas, "e:1", "LoadBalancer"))
        return proxy["spec"]["provider"]["kubernetes"]["envoyDeployment"]["strategy"]["rollingUpdate"]

    assert rolling(3) == {"maxSurge": 0, "maxUnavailable": 1}
    assert rolling(1) == {"maxSurge": 1, "maxUnavailable": 0}


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
def test_karpenter_waits_until_a_replaced_engine_is_gone(env: str) -> None:
    values = one(graph(env), "kubernetes:helm.sh/v3:Release", "karpenter-karpenter").inputs["values"]["settings"]
    pod = one(graph(env), "kubernetes:apps/v1:Deployment", "engines").inputs["spec"]["template"]["spec"]
    idle = int(values["batchIdleDuration"].removesuffix("s"))
    assert idle > pod["terminationGracePeriodSeconds"]
    assert int(values["batchMaxDuration"].removesuffix("s")) >= 2 * idle, "another pod's window may end before"


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
def test_what_waits_for_envoy_outlasts_its_longest_stream(env: str) -> None:
    spec = one(graph(env), "kubernetes:gateway.envoyproxy.io/v1alpha1:EnvoyProxy").inputs["spec"]
    drain = int(spec["shutdown"]["drainTimeout"].removesuffix("s"))
    service = str(spec["provider"]["kubernetes"]["envoyService"]["annotations"])
    found = re.search(r"draining_interval_seconds=(\d+)", service)
    assert found
    assert drain == settings_of(env).gateway.max_stream_seconds
    assert drain < int(found[1]) <= draining.NODE_UPDATE_SECONDS
    assert draining.unhealthy_target_seconds(draining.LONGEST_STREAM_SECONDS) <= draining.NODE_UPDATE_SECONDS


@pytest.mark.parametrize("workload", ["engines", "weight-cache"])
def test_prometheus_reaches_pods_from_its_namespace(workload: str) -> None:
    policy = one(graph("prod"), "kubernetes:networking.k8s.io/v1:NetworkPolicy", f"{workload}-network").inputs["spec"]
    [rule] = policy["ingress"]
    spaces = [source["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for source in rule["from"]]
    assert spaces[-1] == "monitoring"
    assert len(rule["ports"]) == 1
    assert ("Egress" in policy["policyTypes"]) == (workload == "engines")
