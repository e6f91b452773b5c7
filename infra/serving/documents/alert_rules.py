"""Alert rules: when a person has to look, and which runbook says at what. documents/alerts.py gives them their form.

Severity `page` wakes somebody; `ticket` waits for the morning. Metrics named `kube_*` come from kube-state-metrics,
`DCGM_*` from dcgm-exporter, `keda_*` from KEDA's operator, `envoy_*` from the gateway, `vllm:*` from the engines.
"""

from collections.abc import Callable, Mapping

from srvmod.infra.labels import ENGINE, SERVING, WEIGHT_CACHE
from srvmod.infra.serving.documents import scaler
from srvmod.infra.serving.documents.alert import HEARTBEAT, PAGE, TICKET, Alert, Fleet
from srvmod.infra.serving.documents.machine_alerts import gateway, nodes
from srvmod.infra.serving.documents.metrics import (
    ITL,
    KV_CACHE,
    P95,
    PREEMPTIONS,
    RUNNING,
    TTFT,
    WAITING,
    of,
    share_above,
)


def latency(fleet: Fleet) -> list[Alert]:
    """What users feel. INV-SRVMOD-02 is the first."""
    itl, ttft = fleet.itl_target_seconds, fleet.ttft_target_seconds
    most = f"{1 - P95:.2g}"
    return [
        Alert(
            "InterTokenLatencyHigh",
            f"{share_above(ITL, itl, '5m')} > {most}",
            2,
            PAGE,
            f"p95 inter-token latency is above {itl * 1e3:g} ms",
            "{{ $value | humanizePercentage }} of tokens came later than "
            f"{itl * 1e3:g} ms after the one before (INV-SRVMOD-02 allows 5 %).",
            "itl-over-target.md",
        ),
        Alert(
            "InterTokenLatencyOfOneEngineHigh",
            f"{share_above(ITL, itl, '10m', by='pod')} > {most}",
            20,
            TICKET,
            f"p95 inter-token latency of {{{{ $labels.pod }}}} is above {itl * 1e3:g} ms",
            "If the others are within the target, its node is slow.",
            "itl-over-target.md",
        ),
        Alert(
            "TimeToFirstTokenHigh",
            f"{share_above(TTFT, ttft, '5m')} > {most}",
            5,
            PAGE,
            f"p95 time to first token is above {ttft * 1e3:g} ms",
            "{{ $value | humanizePercentage }} of requests waited longer than "
            f"{ttft * 1e3:g} ms for their first token.",
            "itl-over-target.md",
        ),
        Alert(
            "RequestsQueue",
            f"sum(avg_over_time({of(WAITING)}[5m])) > 0.02 * sum(avg_over_time({of(RUNNING)}[5m]))",
            5,
            TICKET,
            "requests wait for a place in an engine",
            "More than 2 % of the running ones: too much traffic, or a sequence limit that is too low.",
            "itl-over-target.md",
        ),
        Alert(
            "KvCacheNearlyFull",
            f"max by (pod) ({of(KV_CACHE)}) > 0.9",
            5,
            TICKET,
            "KV cache of {{ $labels.pod }} is {{ $value | humanizePercentage }} full",
            "Contexts are longer than declared; the next step is preemption, which users see as a pause.",
            "itl-over-target.md",
        ),
        Alert(
            "SequencesPreempted",
            f"sum by (pod) (rate({of(PREEMPTIONS)}[10m])) > 0",
            10,
            TICKET,
            "{{ $labels.pod }} preempts sequences",
            "Its KV cache was full; preempted sequences are computed again.",
            "itl-over-target.md",
        ),
    ]


def engines(fleet: Fleet) -> list[Alert]:
    """Whether engines are there."""
    available = of("kube_deployment_status_replicas_available", deployment=ENGINE)
    return [
        Alert(
            "EnginesMissing",
            f"{available} < {fleet.least}",
            15,
            PAGE,
            f"{{{{ $value }}}} of at least {fleet.least} engines are ready",
            "Fewer engines than the plan needs: latency is missed at peak traffic, and one island more may be lost.",
            "engine-not-ready.md",
        ),
        Alert(
            "NoEngine",
            f"{available} == 0",
            2,
            PAGE,
            "no engine is ready",
            "Every request is answered with 503.",
            "engine-not-ready.md",
        ),
        Alert(
            "EngineRestarts",
            f"increase({of('kube_pod_container_status_restarts_total', container=ENGINE)}[30m]) > 2",
            0,
            PAGE,
            "{{ $labels.pod }} restarts again and again",
            "{{ $value }} restarts in half an hour.",
            "engine-not-ready.md",
        ),
        Alert(
            "EngineWaitsForNode",
            f'sum(kube_pod_status_phase{{namespace="{SERVING}",phase="Pending",pod=~"{ENGINE}-.*"}}) > 0',
            30,
            PAGE,
            "{{ $value }} engines have waited for a node for half an hour",
            "Boot, image and weights take ten minutes: a p5 doesn't come.",
            "node-never-comes.md",
        ),
        Alert(
            "WeightsNotVerified",
            f"{of('kube_daemonset_status_number_unavailable', daemonset=WEIGHT_CACHE)} > 0",
            20,
            PAGE,
            "weights of {{ $value }} nodes aren't there",
            "No engine starts on such a node, and it is billed.",
            "weights-not-verified.md",
        ),
        Alert(
            "WeightsFillFails",
            f"sum by (pod, reason) (increase({of('weight_cache_failures_total')}[15m])) > 2",
            0,
            TICKET,
            "{{ $labels.pod }} can't fill its node: {{ $labels.reason }}",
            "{{ $value }} failed attempts in a quarter of an hour.",
            "weights-not-verified.md",
        ),
    ]


def scaling(fleet: Fleet) -> list[Alert]:
    """Whether the fleet follows its load."""
    hpa = {"horizontalpodautoscaler": scaler.HPA}
    inactive = of("kube_horizontalpodautoscaler_status_condition", **hpa, condition="ScalingActive", status="false")
    running = of("kube_horizontalpodautoscaler_status_current_replicas", **hpa)
    return [
        Alert(
            "EngineMetricsMissing",
            f"absent({of(f'{ITL}_count')})",
            5,
            PAGE,
            "no engine's latency is measured",
            "The scaler is blind and holds what runs; the latency alerts can't fire.",
            "scaler-blind.md",
        ),
        Alert(
            "ScalerFails",
            f'sum by (triggerIndex) (increase(keda_scaler_detail_errors_total{{scaledObject="{ENGINE}"}}[5m])) > 0',
            10,
            PAGE,
            "KEDA can't ask for the engines' metrics",
            "Trigger {{ $labels.triggerIndex }} fails: what runs is held, nothing is added.",
            "scaler-blind.md",
        ),
        Alert(
            "ScalerInactive",
            f"{inactive} == 1",
            10,
            PAGE,
            "the engines' autoscaler doesn't scale",
            "Kubernetes gets no metric from KEDA.",
            "scaler-blind.md",
        ),
        Alert(
            "FleetAtMaximum",
            f"{running} >= {fleet.most}",
            15,
            PAGE,
            f"all {fleet.most} engines that the scaler may run do",
            "More load can't be followed: engine.maxEngines.",
            "scale-by-hand.md",
        ),
    ]


def heartbeat(fleet: Fleet) -> list[Alert]:
    """Fires always: rules are evaluated, and Alertmanager's messages get out."""
    return [
        Alert(
            "AlertsGetOut",
            "vector(1)",
            0,
            HEARTBEAT,
            "alerts are evaluated and get out",
            "No alarm by itself: its absence is one.",
            "alerts-silent.md",
        )
    ] * fleet.heartbeat


GROUPS: Mapping[str, Callable[[Fleet], list[Alert]]] = {
    "latency": latency,
    "engines": engines,
    "scaling": scaling,
    "nodes": nodes,
    "gateway": gateway,
    "heartbeat": heartbeat,
}
