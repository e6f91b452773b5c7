"""The engines' metrics: their names in vLLM 0.33, PromQL over them, and who scrapes what."""

from srvmod.contract import ITL_P95_MS, TTFT_MS
from srvmod.infra.labels import (
    ENGINE,
    ENVOY_GATEWAY_NAMESPACE,
    SERVING,
    WEIGHT_CACHE,
    Object,
    metadata,
    selector,
)

ITL = "vllm:inter_token_latency_seconds"
TTFT = "vllm:time_to_first_token_seconds"
RUNNING = "vllm:num_requests_running"
WAITING = "vllm:num_requests_waiting"
KV_CACHE = "vllm:kv_cache_usage_perc"
PREEMPTIONS = "vllm:num_preemptions_total"

ITL_TARGET_SECONDS = ITL_P95_MS.value / 1e3
TTFT_TARGET_SECONDS = TTFT_MS.value / 1e3
P95 = 0.95
SCRAPE_SECONDS = 15
"""Four samples in the minute that the scaler looks back: one lost scrape is no lost minute."""
MONITORING_GROUP = "monitoring.coreos.com/v1"
ENVOY_METRICS = "envoy"
"""Name of the PodMonitor of the gateway's Envoy pods."""


def of(metric: str, **labels: str) -> str:
    """A metric of the serving namespace, with more labels: `name{namespace="serving",le="0.03"}`."""
    pairs = ",".join(f'{key}="{value}"' for key, value in {"namespace": SERVING, **labels}.items())
    return f"{metric}{{{pairs}}}"


def share_above(histogram: str, edge_seconds: float, window: str, by: str = "") -> str:
    """Share of observations above a bucket's edge: exact, where a quantile interpolates between edges."""
    grouped = f" by ({by})" if by else ""
    below = of(f"{histogram}_bucket", le=f"{edge_seconds:g}")
    return f"1 - sum{grouped} (rate({below}[{window}])) / sum{grouped} (rate({of(f'{histogram}_count')}[{window}]))"


def pod_monitors() -> list[Object]:
    """PodMonitors of engines, weight caches and Envoy."""
    return [
        _monitor(ENGINE, SERVING, ENGINE, "http", "/metrics"),
        _monitor(WEIGHT_CACHE, SERVING, WEIGHT_CACHE, "status", "/metrics"),
        _monitor(ENVOY_METRICS, ENVOY_GATEWAY_NAMESPACE, "envoy", "metrics", "/stats/prometheus"),
    ]


def _monitor(name: str, namespace: str, pods: str, port: str, path: str) -> Object:
    return {
        "apiVersion": MONITORING_GROUP,
        "kind": "PodMonitor",
        "metadata": metadata(name, namespace),
        "spec": {
            "selector": {"matchLabels": selector(pods)},
            "podMetricsEndpoints": [{"port": port, "path": path, "interval": f"{SCRAPE_SECONDS}s"}],
        },
    }
