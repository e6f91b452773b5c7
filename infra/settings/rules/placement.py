"""Rules about the system nodes: Envoy and the controllers have a place on them."""

from collections.abc import Iterator

from srvmod.contract import system_node
from srvmod.infra import footprint
from srvmod.infra.settings.edge import ChartMode
from srvmod.infra.settings.rules.finding import Finding, Rule
from srvmod.infra.settings.settings import Settings

MOST_NODES = 20
"""Of `cluster.systemNodes.count`."""


def system_pods_fit(s: Settings) -> Iterator[Finding]:
    """A pod that finds no place stays pending for ever: nothing adds system nodes. Types that aren't in the contract's
    table can't be judged."""
    system = s.cluster.system_nodes
    node = system_node(system.instance_type)
    if s.aws.simulated or node is None:
        return
    most = s.gateway.max_replicas or s.gateway.replicas

    def fits(envoys: int, nodes: int) -> bool:
        pods = [*[footprint.ENVOY] * envoys, *_controllers(s)]
        return footprint.fits(pods, nodes, node.cpu_millis, node.memory_mib)

    if fits(most, system.count):
        return
    enough = next((nodes for nodes in range(system.count + 1, MOST_NODES + 1) if fits(most, nodes)), None)
    fewer = next((envoys for envoys in range(most - 1, 0, -1) if fits(envoys, system.count)), None)
    ways = [
        f"cluster.systemNodes.count: {enough}" if enough else "",
        "a larger cluster.systemNodes.instanceType",
        f"at most {fewer} here" if fewer else "",
    ]
    yield Finding(
        ("gateway", "maxReplicas" if s.gateway.max_replicas else "replicas"),
        f"{most} Envoys of {footprint.ENVOY.cpu_millis / 1e3:g} CPUs and the controllers don't fit on {system.count} "
        f"system nodes {system.instance_type}, of which pods get {node.cpu_millis / 1e3:g} CPUs each",
        "; or ".join(way for way in ways if way),
        most,
    )


def _controllers(s: Settings) -> list[footprint.PodSize]:
    """Pods of what the program installs; what others have installed may run elsewhere."""
    install = ChartMode.INSTALL
    found = [footprint.ADD_ON] * footprint.ADD_ON_PODS
    if s.charts.karpenter is install:
        found += [footprint.KARPENTER] * footprint.KARPENTER_REPLICAS
    if s.charts.envoy_gateway is install:
        found += [footprint.ENVOY_GATEWAY] * footprint.ENVOY_GATEWAY_REPLICAS
    if s.charts.keda is install:
        found += [footprint.KEDA] * footprint.KEDA_PODS
    if s.charts.prometheus_stack is install:
        found += [footprint.PROMETHEUS] * footprint.PROMETHEUS_REPLICAS
    return found


RULES: tuple[Rule, ...] = (system_pods_fit,)
