"""What the system nodes have to hold: requests of Envoy and of the controllers that the program installs.

The documents say the same numbers; a test compares them. For charts that no test can read they are the charts'
defaults.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PodSize:
    """What a pod asks for: CPU in thousandths, memory in MiB. `apart`: no two of a kind on one node."""

    name: str
    cpu_millis: int
    memory_mib: int
    apart: bool = False


ENVOY = PodSize("Envoy", 2_010, 1_056)
"""Envoy itself (2 CPUs, 1 GiB) and Envoy Gateway's helper that drains it (10m, 32Mi)."""
KARPENTER = PodSize("Karpenter", 1_000, 1_024, apart=True)
ENVOY_GATEWAY = PodSize("Envoy Gateway", 100, 256)
KEDA = PodSize("KEDA", 100, 100)
PROMETHEUS = PodSize("Prometheus", 250, 2_048)
ADD_ON = PodSize("CoreDNS or metrics-server", 100, 200)

KARPENTER_REPLICAS = 2
ENVOY_GATEWAY_REPLICAS = 2
PROMETHEUS_REPLICAS = 2
KEDA_PODS = 3
"""Operator, metrics API, webhooks."""
ADD_ON_PODS = 4
"""Two each of CoreDNS and metrics-server."""
DAEMONS = PodSize("daemons of each node", 160, 200)
"""vpc-cni 50m, kube-proxy 100m, node monitoring agent 10m."""


@dataclass
class _Node:
    cpu_millis: int
    memory_mib: int
    names: list[str] = field(default_factory=list[str])

    def takes(self, pod: PodSize) -> bool:
        """Place a pod here if there is room."""
        room = self.cpu_millis >= pod.cpu_millis and self.memory_mib >= pod.memory_mib
        if not room or (pod.apart and pod.name in self.names):
            return False
        self.cpu_millis -= pod.cpu_millis
        self.memory_mib -= pod.memory_mib
        self.names.append(pod.name)
        return True


def fits(pods: Sequence[PodSize], nodes: int, cpu_millis: int, memory_mib: int) -> bool:
    """Whether pods find a place on equal nodes of that much allocatable: largest first, each on the first with room."""
    free = [_Node(cpu_millis - DAEMONS.cpu_millis, memory_mib - DAEMONS.memory_mib) for _ in range(nodes)]
    largest_first = sorted(pods, key=lambda pod: (pod.cpu_millis, pod.memory_mib), reverse=True)
    return all(any(node.takes(pod) for node in free) for pod in largest_first)
