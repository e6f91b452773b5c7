"""The scaler: a KEDA ScaledObject that follows inter-token latency and the sessions that the plan gives an engine.

Why it doesn't flap, although a new engine needs `ENGINE_START_SECONDS` and may never come:

- Latency adds engines and holds them, but doesn't take them away until it is far below its target: between
  `RELEASE_SHARE` of the target and 38 ms it asks for exactly what runs. A plain threshold of 38 ms would remove engines
  at 33 ms, above the target of 30 ms.
- Sessions per engine ask for what the plan asks for; the larger wish counts. So nothing goes that the sessions need.
- What is added counts only once it is ready (the HPA multiplies by ready pods), and one step is at most half of the
  fleet per `ENGINE_START_SECONDS` and Karpenter's own wait: the same breach isn't answered twice.
- Engines go one node's worth at a time, `REMOVE_EVERY_SECONDS` apart, after `CALM_SECONDS` without a larger wish.

Missing data is no zero: a query without result is an error (`ignoreNullValues: false`). After `FAILED_POLLS` of them
KEDA falls back to what runs, and at least to the plan's fewest engines; an alert says so (documents/alerts.py).
"""

from dataclasses import dataclass

import pulumi

from srvmod.contract import SCALE_OUT_AFTER_SECONDS, SCALE_OUT_ITL_MS
from srvmod.infra.labels import ENGINE, Object, metadata
from srvmod.infra.serving.documents.metrics import ITL, ITL_TARGET_SECONDS, P95, RUNNING, SCRAPE_SECONDS, WAITING, of

GROUP = "keda.sh/v1alpha1"
HPA = f"keda-hpa-{ENGINE}"
"""The HorizontalPodAutoscaler that KEDA makes of a ScaledObject."""
WINDOW = f"{SCALE_OUT_AFTER_SECONDS.value:g}s"
LIMIT_SECONDS = SCALE_OUT_ITL_MS.value / 1e3
FIRST_STEP = 1.2
"""A breach asks for a fifth more engines at least: the HPA does nothing within 10 % of its target, so that 39 ms alone
would be no breach to it."""
RELEASE_SHARE = 2 / 3
"""Share of the latency target below which latency lets engines go."""
ENGINE_START_SECONDS = 600
"""Boot of a p5, image, weights, load and warm-up."""
CALM_SECONDS = 3 * ENGINE_START_SECONDS
REMOVE_EVERY_SECONDS = 2 * ENGINE_START_SECONDS
FAILED_POLLS = 4


@dataclass(frozen=True)
class Scaler:
    """`least` and `most` are engines; `sessions_per_engine` is what the plan gives one. `address` is Prometheus';
    `node_wait_seconds` is how long Karpenter waits before it buys a node;
    `amazon_region` is the region of a managed one, asked with KEDA's own role."""

    namespace: str
    least: int
    most: int
    sessions_per_engine: int
    engines_per_node: int
    address: pulumi.Input[str]
    node_wait_seconds: int = 0
    amazon_region: str | None = None
    itl_target_seconds: float = ITL_TARGET_SECONDS


def scaled_object(scaler: Scaler) -> Object:
    """ScaledObject of the engines. `cooldownPeriod` is left out: it counts only for scaling to zero."""
    return {
        "apiVersion": GROUP,
        "kind": "ScaledObject",
        "metadata": metadata(ENGINE, scaler.namespace),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": ENGINE},
            "minReplicaCount": scaler.least,
            "maxReplicaCount": scaler.most,
            "pollingInterval": SCRAPE_SECONDS,
            "fallback": {
                "failureThreshold": FAILED_POLLS,
                "replicas": scaler.least,
                "behavior": "currentReplicasIfHigher",
            },
            "advanced": {"horizontalPodAutoscalerConfig": {"name": HPA, "behavior": _behavior(scaler)}},
            "triggers": [
                _trigger(scaler, "latency", latency_query(scaler.itl_target_seconds), f"{LIMIT_SECONDS:g}", "Value"),
                _trigger(scaler, "sessions", sessions_query(), str(scaler.sessions_per_engine), "AverageValue"),
            ],
        },
    }


def latency_query(target_seconds: float) -> str:
    """What KEDA compares with 38 ms: more than it in a breach, exactly it while engines have to stay, the latency
    itself when it is low, 0 when no token was made, and nothing when nothing is measured."""
    buckets = of(f"{ITL}_bucket")
    p95 = f"histogram_quantile({P95:g}, sum by (le) (rate({buckets}[{WINDOW}])))"
    return (
        f"{FIRST_STEP:g} * ({p95} > {LIMIT_SECONDS:g})\n"
        f"or 0 * ({p95} >= {target_seconds * RELEASE_SHARE:g}) + {LIMIT_SECONDS:g}\n"
        f"or ({p95} >= 0)\n"
        f"or 0 * sum(rate({of(f'{ITL}_count')}[{WINDOW}]))"
    )


def sessions_query() -> str:
    """Sessions of all engines, running and waiting, over the last minute."""
    return f"sum(avg_over_time({of(RUNNING)}[{WINDOW}])) + sum(avg_over_time({of(WAITING)}[{WINDOW}]))"


def _trigger(scaler: Scaler, name: str, query: str, threshold: str, metric_type: str) -> Object:
    amazon = scaler.amazon_region
    return {
        "type": "prometheus",
        "name": name,
        "metricType": metric_type,
        "metadata": {
            "serverAddress": scaler.address,
            "query": query,
            "threshold": threshold,
            "ignoreNullValues": "false",
            **({"awsRegion": amazon} if amazon else {}),
        },
        **({"authenticationRef": {"name": ENGINE}} if amazon else {}),
    }


def _behavior(scaler: Scaler) -> Object:
    start_seconds = ENGINE_START_SECONDS + scaler.node_wait_seconds

    def pods(count: int, seconds: int) -> Object:
        return {"type": "Pods", "value": count, "periodSeconds": seconds}

    return {
        "scaleUp": {
            # The query looks back a minute already.
            "stabilizationWindowSeconds": 0,
            "selectPolicy": "Max",
            "policies": [
                {"type": "Percent", "value": 50, "periodSeconds": start_seconds},
                pods(scaler.engines_per_node, start_seconds),
            ],
        },
        "scaleDown": {
            "stabilizationWindowSeconds": CALM_SECONDS,
            "policies": [pods(scaler.engines_per_node, REMOVE_EVERY_SECONDS)],
        },
    }


def trigger_authentication(namespace: str) -> Object:
    """TriggerAuthentication: KEDA signs its questions with the role of its own service account (pod identity)."""
    return {
        "apiVersion": GROUP,
        "kind": "TriggerAuthentication",
        "metadata": metadata(ENGINE, namespace),
        "spec": {"podIdentity": {"provider": "aws"}},
    }
