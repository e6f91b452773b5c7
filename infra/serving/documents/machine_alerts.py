"""Alert rules about what engines stand on: machines, GPUs and the gateway."""

from srvmod.infra.labels import ENGINE, ENVOY_GATEWAY_NAMESPACE, SERVING
from srvmod.infra.serving.documents.alert import PAGE, TICKET, Alert, Fleet

_PLACED = f'kube_pod_info{{namespace="{SERVING}",pod=~"{ENGINE}-.*",created_by_kind="ReplicaSet",node!=""}}'
"""Engines that have a node."""
_PROXIES = f'namespace="{ENVOY_GATEWAY_NAMESPACE}",deployment=~"envoy-.+"'
"""Envoy's Deployments; the controller's own is `envoy-gateway`, which an update may hold up as well."""


def nodes(fleet: Fleet) -> list[Alert]:
    """Machines and their GPUs."""
    return [
        Alert(
            "NodeNotReady",
            'kube_node_status_condition{condition="Ready",status="true"} == 0',
            10,
            PAGE,
            "node {{ $labels.node }} isn't Ready",
            "Nobody repairs it by itself: node repair would force-terminate a p5.",
            "drain-a-node.md",
        ),
        Alert(
            "GpuFault",
            "max by (Hostname, gpu) (changes(DCGM_FI_DEV_XID_ERRORS[15m])) > 0",
            0,
            PAGE,
            "GPU {{ $labels.gpu }} of {{ $labels.Hostname }} reported an XID error",
            "The engine on it may be wrong or slow.",
            "drain-a-node.md",
        ),
        Alert(
            "GpuMemoryFails",
            "max by (Hostname, gpu) (DCGM_FI_DEV_ROW_REMAP_FAILURE) > 0",
            0,
            PAGE,
            "GPU {{ $labels.gpu }} of {{ $labels.Hostname }} can't replace broken memory",
            "It has to go.",
            "drain-a-node.md",
        ),
        Alert(
            "NvlinkErrors",
            "sum by (Hostname, gpu) (increase(DCGM_FI_DEV_NVLINK_ERROR_DL_REPLAY[15m])"
            " + increase(DCGM_FI_DEV_NVLINK_ERROR_DL_RECOVERY[15m])) > 10",
            0,
            TICKET,
            "NVLink of GPU {{ $labels.gpu }} on {{ $labels.Hostname }} repeats transfers",
            "{{ $value }} replays and recoveries in a quarter of an hour: all-reduce of that island gets slower.",
            "drain-a-node.md",
        ),
        Alert(
            "EnginesSpread",
            f"count(count by (node) ({_PLACED})) > ceil(count({_PLACED}) / {fleet.engines_per_node})",
            60,
            TICKET,
            "engines take more nodes than they need",
            "{{ $value }} nodes carry engines that fit on fewer: a p5 is billed for nothing.",
            "engines-spread.md",
        ),
    ]


def gateway(fleet: Fleet) -> list[Alert]:
    """The way in."""
    del fleet
    # Clients' listeners are http-PORT or https-PORT: Envoy's answers to scrapes and probes aren't counted.
    clients = 'envoy_http_conn_manager_prefix=~"https?-.+"'
    answers = "envoy_http_downstream_rq_xx"
    failed = f'{answers}{{{clients},envoy_response_code_class="5"}}'
    return [
        Alert(
            "GatewayErrors",
            f"sum(rate({failed}[5m])) / sum(rate({answers}{{{clients}}}[5m])) > 0.01",
            5,
            PAGE,
            "{{ $value | humanizePercentage }} of requests are answered with 5xx",
            "No engine, or Envoy sees none of them as healthy.",
            "envoy-5xx.md",
        ),
        Alert(
            "GatewayNotUpdated",
            f'kube_deployment_status_condition{{{_PROXIES},condition="Progressing",status="false"}} == 1',
            15,
            TICKET,
            "an update of Envoy ({{ $labels.deployment }}) doesn't get on",
            "Its new pods don't become ready: some Envoys run with the settings or the version of before.",
            "gateway-not-updated.md",
        ),
        Alert(
            "GatewayWaitsForPlace",
            f'max by (pod) (kube_pod_status_phase{{namespace="{ENVOY_GATEWAY_NAMESPACE}",phase="Pending",'
            'pod=~"envoy-.+"}) > 0',
            20,
            PAGE,
            "{{ $labels.pod }} finds no place on the system nodes",
            "Longer than the Envoy before it may drain: nothing adds system nodes.",
            "gateway-not-updated.md",
        ),
    ]
