"""The serving layer: from settings to weights on nodes, engines and the routes to them."""

import math

import pulumi

from srvmod.contract import GPUS_PER_NODE
from srvmod.infra import draining, identifiers
from srvmod.infra.aws.layer import Cloud
from srvmod.infra.labels import ENVOY_GATEWAY_NAMESPACE, METRICS_NAMESPACE
from srvmod.infra.platform.layer import STREAM_IDLE, Platform
from srvmod.infra.serving.alerts import Alerts, AlertsArgs
from srvmod.infra.serving.autoscaling import Autoscaling, AutoscalingArgs
from srvmod.infra.serving.documents import alert_rules, engine_flags, weight_cache
from srvmod.infra.serving.documents import engine as engine_documents
from srvmod.infra.serving.documents import route as route_documents
from srvmod.infra.serving.documents import scaler as scaler_documents
from srvmod.infra.serving.engines import Engines, EnginesArgs
from srvmod.infra.serving.routes import Routes, RoutesArgs
from srvmod.infra.serving.weights import WeightCache, WeightCacheArgs
from srvmod.infra.settings import PrometheusKind, Settings
from srvmod.infra.settings.serving import TrafficSettings
from srvmod.infra.versions import PROMETHEUS_STACK

OPERATED_ADDRESS = f"http://{PROMETHEUS_STACK.name}-prometheus.{METRICS_NAMESPACE}.svc:9090"
"""The Prometheus that the chart kube-prometheus-stack makes."""


def build(settings: Settings, cloud: Cloud, platform: Platform) -> None:
    """Declare everything that serves."""
    opts = pulumi.ResourceOptions(provider=cloud.kubernetes, depends_on=list(platform.ready))
    monitoring = settings.monitoring.namespace
    weights = WeightCache("weight-cache", WeightCacheArgs(_weight_cache(settings, cloud, platform), monitoring), opts)
    engines = Engines(
        "engines",
        EnginesArgs(
            engine_of(settings, platform), ENVOY_GATEWAY_NAMESPACE, monitoring, started=settings.engine.started
        ),
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[weights])),
    )
    if settings.engine.started:
        _watched(settings, cloud, platform, engines)
    Routes(
        "routes",
        RoutesArgs(
            _route(settings, platform),
            clients=settings.gateway.api_clients,
            keys=cloud.api_keys,
        ),
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[engines])),
    )


def _watched(settings: Settings, cloud: Cloud, platform: Platform, engines: Engines) -> None:
    """Scaler and alerts. Without engines both would only report that there are none."""
    opts = pulumi.ResourceOptions(provider=cloud.kubernetes, depends_on=[engines, platform.keda])
    Autoscaling("autoscaling", AutoscalingArgs(scaler_of(settings, cloud, platform)), opts)
    monitoring = settings.monitoring
    Alerts(
        "alerts",
        AlertsArgs(
            alert_rules.Fleet(
                least=settings.sizing.min_engines,
                most=settings.sizing.max_engines,
                engines_per_node=settings.engine.engines_per_node,
                itl_target_seconds=settings.slo.itl_p95_ms / 1e3,
                ttft_target_seconds=settings.slo.ttft_ms / 1e3,
                runbooks=monitoring.runbooks,
                receiver=monitoring.alert_receiver,
                heartbeat=monitoring.heartbeat_topic_arn is not None,
            ),
            operated=monitoring.prometheus is not PrometheusKind.EXISTING,
            amazon=cloud.metrics,
            aws=cloud.aws,
            topic_arn=monitoring.alert_topic_arn,
            heartbeat_arn=monitoring.heartbeat_topic_arn,
        ),
        pulumi.ResourceOptions(provider=cloud.kubernetes, depends_on=[*platform.ready, platform.prometheus]),
    )


def scaler_of(settings: Settings, cloud: Cloud, platform: Platform) -> scaler_documents.Scaler:
    """The scaler as settings and planner describe it. A session's share is the plan's, also where fewer engines than
    planned run."""
    sizing = settings.sizing
    return scaler_documents.Scaler(
        namespace=platform.namespace,
        least=sizing.min_engines,
        most=sizing.max_engines,
        sessions_per_engine=math.ceil(settings.traffic.sessions / sizing.plan.engines),
        engines_per_node=settings.engine.engines_per_node,
        node_wait_seconds=draining.node_wait_seconds(settings.engine.shutdown_timeout_seconds),
        address=cloud.metrics.endpoint if cloud.metrics else settings.monitoring.address or OPERATED_ADDRESS,
        amazon_region=settings.aws.region if cloud.metrics else None,
        itl_target_seconds=settings.slo.itl_p95_ms / 1e3,
    )


def _weight_cache(settings: Settings, cloud: Cloud, platform: Platform) -> weight_cache.WeightCache:
    return weight_cache.WeightCache(
        namespace=platform.namespace,
        pool=platform.pool,
        image=settings.weight_cache_image,
        image_pull_policy=identifiers.pull_policy(settings),
        bucket=cloud.bucket,
        prefix=settings.model.weights_prefix,
        revision=settings.model.revision,
        region=settings.aws.region,
        required=identifiers.weights_files(settings),
        aws_endpoint=settings.aws.pod_endpoint,
    )


def engine_of(settings: Settings, platform: Platform) -> engine_documents.Engine:
    """The engine as settings and planner describe it; every value is known before anything exists."""
    sizing, engine, model = settings.sizing, settings.engine, settings.model
    return engine_documents.Engine(
        namespace=platform.namespace,
        pool=platform.pool,
        kind=engine.kind,
        image=engine.image,
        image_pull_policy=identifiers.pull_policy(settings),
        gpus=int(GPUS_PER_NODE.value) // engine.engines_per_node,
        least=sizing.min_engines,
        revision=model.revision,
        pretended=settings.aws.simulated,
        annotated=settings.monitoring.prometheus is PrometheusKind.EXISTING,
        sessions=settings.traffic.sessions,
        mix=_mix(settings.traffic),
        plan_waiver=engine.plan_waiver,
        flags=engine_flags.EngineFlags(
            model_path=weight_cache.revision_folder(model.revision),
            served_name=model.served_name,
            port=engine_documents.PORT,
            tensor_parallel_size=engine.tensor_parallel_size,
            block_size=settings.kv_block_tokens,
            kv_cache_dtype=model.effective_kv_cache_dtype.vllm_name,
            max_model_len=model.max_model_len,
            max_num_seqs=sizing.max_num_seqs,
            max_num_batched_tokens=engine.max_num_batched_tokens,
            max_cudagraph_capture_size=sizing.cudagraph_capture_size,
            gpu_memory_utilization=sizing.plan.layout.gpu_memory_utilization,
            shutdown_timeout_seconds=engine.shutdown_timeout_seconds,
            itl_target_seconds=settings.slo.itl_p95_ms / 1e3,
            ttft_target_seconds=settings.slo.ttft_ms / 1e3,
            drafting=_drafting(settings),
            extra=engine.extra_args,
        ),
    )


def _mix(traffic: TrafficSettings) -> str:
    return f"{traffic.prompt_tokens}/{traffic.output_tokens}/{traffic.prefix_hit_rate:.6f}".rstrip("0").rstrip(".")


def _drafting(settings: Settings) -> engine_flags.Drafting | None:
    asked = settings.engine.speculation
    if asked is None:
        return None
    folder = weight_cache.revision_folder(settings.model.revision)
    return engine_flags.Drafting(
        method=asked.method.value,
        path=f"{folder}/{asked.draft_folder}",
        batches=[(batches.first, batches.last, batches.tokens) for batches in settings.sizing.drafts],
    )


def _route(settings: Settings, platform: Platform) -> route_documents.Route:
    return route_documents.Route(
        namespace=platform.namespace,
        gateway=platform.gateway,
        hostname=settings.gateway.hostname,
        max_stream=f"{settings.gateway.max_stream_seconds}s",
        stream_idle=STREAM_IDLE,
        max_connections=settings.sizing.max_num_seqs * settings.sizing.max_engines,
    )
