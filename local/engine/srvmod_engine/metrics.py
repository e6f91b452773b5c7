"""The metrics of vLLM 0.33.0: names, labels, help texts and buckets of vllm/v1/metrics/loggers.py."""

import time
from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric

from srvmod_engine.buckets import bounds_for
from srvmod_engine.config import EngineConfig
from srvmod_engine.histogram import Histogram

_HISTOGRAMS: Final[dict[str, tuple[str, str]]] = {
    "vllm:request_prompt_tokens": ("request_tokens", "Number of prefill tokens processed."),
    "vllm:request_generation_tokens": ("request_tokens", "Number of generation tokens processed."),
    "vllm:iteration_tokens_total": ("iteration_tokens", "Histogram of number of tokens per engine_step."),
    "vllm:request_max_num_generation_tokens": (
        "request_tokens",
        "Histogram of maximum number of requested generation tokens.",
    ),
    "vllm:request_params_n": ("request_params_n", "Histogram of the n request parameter."),
    "vllm:request_params_max_tokens": ("request_tokens", "Histogram of the max_tokens request parameter."),
    "vllm:time_to_first_token_seconds": ("time_to_first_token", "Histogram of time to first token in seconds."),
    "vllm:inter_token_latency_seconds": ("inter_token_latency", "Histogram of inter-token latency in seconds."),
    "vllm:request_time_per_output_token_seconds": (
        "inter_token_latency",
        "Histogram of time_per_output_token_seconds per request.",
    ),
    "vllm:e2e_request_latency_seconds": ("request_latency", "Histogram of e2e request latency in seconds."),
    "vllm:request_queue_time_seconds": (
        "request_latency",
        "Histogram of time spent in WAITING phase for request.",
    ),
    "vllm:request_inference_time_seconds": (
        "request_latency",
        "Histogram of time spent in RUNNING phase for request.",
    ),
    "vllm:request_prefill_time_seconds": (
        "request_latency",
        "Histogram of time spent in PREFILL phase for request.",
    ),
    "vllm:request_decode_time_seconds": (
        "request_latency",
        "Histogram of time spent in DECODE phase for request.",
    ),
    "vllm:request_num_preemptions": (
        "request_num_preemptions",
        "Histogram of the number of times a request was preempted.",
    ),
    "vllm:request_prefill_kv_computed_tokens": (
        "request_tokens",
        "Histogram of new KV tokens computed during prefill (excluding cached tokens).",
    ),
}

_GAUGES: Final = {
    "vllm:num_requests_running": "Number of requests in model execution batches.",
    "vllm:num_requests_waiting": "Number of requests waiting to be processed.",
    "vllm:kv_cache_usage_perc": "KV-cache usage. 1 means 100 percent usage.",
}

_COUNTERS: Final = {
    "vllm:prefix_cache_queries": "Prefix cache queries, in terms of number of queried tokens.",
    "vllm:prefix_cache_hits": "Prefix cache hits, in terms of number of cached tokens.",
    "vllm:external_prefix_cache_queries": (
        "External prefix cache queries from KV connector cross-instance cache sharing, "
        "in terms of number of queried tokens."
    ),
    "vllm:external_prefix_cache_hits": (
        "External prefix cache hits from KV connector cross-instance cache sharing, "
        "in terms of number of cached tokens."
    ),
    "vllm:mm_cache_queries": "Multi-modal cache queries, in terms of number of queried items.",
    "vllm:mm_cache_hits": "Multi-modal cache hits, in terms of number of cached items.",
    "vllm:num_preemptions": "Cumulative number of preemption from the engine.",
    "vllm:prompt_tokens": "Number of prefill tokens processed.",
    "vllm:prompt_tokens_cached": "Number of cached prompt tokens (local + external).",
    "vllm:generation_tokens": "Number of generation tokens processed.",
    # Zero unless --enable-mfu-metrics is given, which the simulation refuses.
    "vllm:estimated_flops_per_gpu": (
        "Estimated number of floating point operations per GPU (for Model Flops Utilization calculations)."
    ),
    "vllm:estimated_read_bytes_per_gpu": (
        "Estimated number of bytes read from memory per GPU (for Model Flops Utilization calculations)."
    ),
    "vllm:estimated_write_bytes_per_gpu": (
        "Estimated number of bytes written to memory per GPU (for Model Flops Utilization calculations)."
    ),
}

FINISH_REASONS: Final = ("stop", "length", "abort", "error", "repetition")
_SOURCES: Final = ("local_compute", "local_cache_hit", "external_kv_transfer")
_CACHE_TIERS: Final = ("device", "host", "p2p", "disk", "external_unspecified")
_REJECTIONS: Final = ("max_num_queued_reqs", "max_num_queued_tokens")
_HTTP_SECONDS: Final = (0.1, 0.5, 1.0)  # prometheus-fastapi-instrumentator's default for the labelled histogram
_LAG_SECONDS: Final = (0.0001, 0.00025, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.25, 1.0)


class EngineMetrics:
    """All figures of one engine; a prometheus_client collector."""

    def __init__(self, config: EngineConfig) -> None:
        self._config = config
        self._labels = [config.served_names[0], "0"]
        self._created = time.time()
        self.histograms = {
            name: Histogram(bounds_for(family, config.max_model_len, config.custom_buckets))
            for name, (family, _) in _HISTOGRAMS.items()
        }
        self.gauges = dict.fromkeys(_GAUGES, 0.0)
        self.counters = dict.fromkeys(_COUNTERS, 0.0)
        self.success: dict[str, int] = dict.fromkeys(FINISH_REASONS, 0)
        self.prompt_by_source = dict.fromkeys(_SOURCES, 0)
        self.cached_by_tier = dict.fromkeys(_CACHE_TIERS, 0)
        self.rejections = dict.fromkeys(_REJECTIONS, 0)
        self.http: dict[tuple[str, str, str], int] = {}
        self.http_seconds: dict[tuple[str, str], Histogram] = {}
        self.lag = Histogram(_LAG_SECONDS)
        self.hand_out = Histogram(_LAG_SECONDS)
        self.timing_error = Histogram(_LAG_SECONDS)
        self.lagging_steps = 0
        self.lagging_until = 0.0
        """Time of time.monotonic() up to which the engine counts as lagging, seconds."""

    @property
    def lagging(self) -> bool:
        """Whether the simulation couldn't keep its time a short while ago."""
        return time.monotonic() < self.lagging_until

    def count_http(self, handler: str, method: str, status: int, seconds: float) -> None:
        """One finished HTTP request, as prometheus-fastapi-instrumentator counts it."""
        key = (handler, method, f"{status // 100}xx")
        self.http[key] = self.http.get(key, 0) + 1
        self.http_seconds.setdefault((handler, method), Histogram(_HTTP_SECONDS)).observe(seconds)

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families (prometheus_client's collector protocol)."""
        if self._config.log_stats:
            yield from self._engine()
        yield from self._simulation()
        yield from self._http()

    def _engine(self) -> Iterator[Metric]:
        names = ["model_name", "engine"]
        for name, text in _GAUGES.items():
            gauge = GaugeMetricFamily(name, text, labels=names)
            gauge.add_metric(self._labels, self.gauges[name])
            yield gauge
        waiting = GaugeMetricFamily(
            "vllm:num_requests_waiting_by_reason",
            "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; "
            "'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all "
            "reasons equals vllm:num_requests_waiting.",
            labels=[*names, "reason"],
        )
        waiting.add_metric([*self._labels, "capacity"], self.gauges["vllm:num_requests_waiting"])
        waiting.add_metric([*self._labels, "deferred"], 0)
        yield waiting
        sleep = GaugeMetricFamily(
            "vllm:engine_sleep_state",
            "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; "
            "weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
            labels=[*names, "sleep_state"],
        )
        for state, value in (("awake", 1), ("weights_offloaded", 0), ("discard_all", 0)):
            sleep.add_metric([*self._labels, state], value)
        yield sleep
        yield self._cache_info()
        for name, text in _COUNTERS.items():
            yield self._counter(name, text, names, {(): self.counters[name]})
        yield self._counter(
            "vllm:prompt_tokens_by_source",
            "Number of prompt tokens by source.",
            [*names, "source"],
            {(source,): value for source, value in self.prompt_by_source.items()},
        )
        yield self._counter(
            "vllm:prompt_tokens_cached_by_source",
            "Prefix-cache hit tokens by the cache tier that supplied them.",
            [*names, "source"],
            {(tier,): value for tier, value in self.cached_by_tier.items()},
        )
        yield self._counter(
            "vllm:request_success",
            "Count of successfully processed requests.",
            [*names, "finished_reason"],
            {(reason,): value for reason, value in self.success.items()},
        )
        rejected = CounterMetricFamily(
            "vllm:admission_rejections",
            "Number of admission attempts rejected by a queue limit, by reason.",
            labels=["model_name", "reason"],
        )
        for reason, value in self.rejections.items():
            rejected.add_metric([self._labels[0], reason], value, created=self._created)
        yield rejected
        for name, (_, text) in _HISTOGRAMS.items():
            family = HistogramMetricFamily(name, text, labels=names)
            self.histograms[name].add_to(family, self._labels)
            yield family

    def _counter(
        self, name: str, text: str, names: list[str], values: dict[tuple[str, ...], float]
    ) -> CounterMetricFamily:
        family = CounterMetricFamily(name, text, labels=names)
        for extra, value in values.items():
            family.add_metric([*self._labels, *extra], value, created=self._created)
        return family

    def _cache_info(self) -> GaugeMetricFamily:
        config = self._config
        tokens = config.num_blocks * config.block_size
        info = {
            "block_size": str(config.block_size),
            "cache_dtype": config.kv_cache_dtype,
            "enable_prefix_caching": str(config.prefix_caching),
            "engine": "0",
            "gpu_memory_utilization": str(config.gpu_memory_utilization),
            "kv_cache_max_concurrency": str(tokens / config.max_model_len),
            "kv_cache_size_tokens": str(tokens),
            "num_gpu_blocks": str(config.num_blocks),
        }
        family = GaugeMetricFamily(
            "vllm:cache_config_info", "Information of the LLMEngine CacheConfig", labels=list(info)
        )
        family.add_metric(list(info.values()), 1)
        return family

    def _simulation(self) -> Iterator[Metric]:
        simulated = GaugeMetricFamily(
            "srvmod_sim_info",
            "1: these figures come from a simulated engine, not from a GPU.",
            labels=["stands_for", "instance", "step_model"],
        )
        config = self._config
        simulated.add_metric([config.shape.id, config.sim.instance, config.sim.step_model], 1)
        yield simulated
        for name, text, histogram in (
            ("step_lag", "How late the first token of a step went out against the step model.", self.lag),
            ("hand_out", "From the first to the last token of a step: the clients get them one by one.", self.hand_out),
            (
                "timing_error",
                "Per token: lateness of its step, or error of its interval, the larger.",
                self.timing_error,
            ),
        ):
            family = HistogramMetricFamily(f"srvmod_sim_{name}_seconds", text, labels=[])
            histogram.add_to(family, [])
            yield family
        lagging = GaugeMetricFamily(
            "srvmod_sim_lagging",
            "1 when the simulation couldn't keep its time in the last seconds: p95 of the timing error above 1 ms.",
            labels=[],
        )
        lagging.add_metric([], self.lagging)
        yield lagging
        steps = CounterMetricFamily(
            "srvmod_sim_lagging_steps", "Steps that ended later than a whole step after their time.", labels=[]
        )
        steps.add_metric([], self.lagging_steps, created=self._created)
        yield steps

    def _http(self) -> Iterator[Metric]:
        requests = CounterMetricFamily(
            "http_requests",
            "Total number of requests by method, status and handler.",
            labels=["handler", "method", "status"],
        )
        for key, value in self.http.items():
            requests.add_metric([*key], value, created=self._created)
        yield requests
        seconds = HistogramMetricFamily(
            "http_request_duration_seconds", "Latency with only few buckets by handler.", labels=["handler", "method"]
        )
        for pair, histogram in self.http_seconds.items():
            histogram.add_to(seconds, [*pair])
        yield seconds


def build_registry(metrics: EngineMetrics) -> CollectorRegistry:
    """A registry with the engine's figures and Python's and the process's usual ones."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)  # type: ignore[arg-type]  # duck-typed collector
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry
