"""Fills the contract from settings and exports it."""

import math
from collections.abc import Mapping

import pulumi

from srvmod.contract import counted
from srvmod.infra import identifiers
from srvmod.infra.aws.layer import Cloud
from srvmod.infra.labels import METRICS_NAMESPACE
from srvmod.infra.outputs import contract
from srvmod.infra.platform.documents.gateway import HTTP_PORT, HTTPS_PORT
from srvmod.infra.platform.layer import Platform
from srvmod.infra.serving.documents.route import API_KEYS, KEY_HEADER, PATHS
from srvmod.infra.settings import ChartMode, PrometheusKind, Settings, Sizing
from srvmod.infra.versions import PROMETHEUS_STACK


def outputs(settings: Settings, cloud: Cloud, platform: Platform) -> contract.Outputs:
    """The stack's outputs; all of them are known before anything exists."""
    namespace = platform.namespace
    sizing, gate = settings.sizing, settings.gateway
    engines = sizing.min_engines
    rate = sizing.prediction.tokens_per_second * engines
    return contract.Outputs(
        endpoint=contract.Endpoint(
            hostname=gate.hostname,
            scheme="https" if gate.tls else "http",
            port=HTTPS_PORT if gate.tls else HTTP_PORT,
            path="/v1",
            gateway=f"{namespace}/{platform.gateway}",
        ),
        model=contract.Model(
            id=settings.model.id, served_name=settings.model.served_name, revision=settings.model.revision
        ),
        slo=contract.Slo(itl_p95_ms=settings.slo.itl_p95_ms, ttft_ms=settings.slo.ttft_ms),
        auth=contract.Auth(
            scheme="bearer",
            keys_in=identifiers.api_keys_secret(settings),
            secret=f"{namespace}/{API_KEYS}",
            clients=sorted(settings.gateway.api_clients),
            header=KEY_HEADER,
            how_to_get_a_key=_how_to_get_a_key(settings),
        ),
        limits=contract.Limits(
            max_model_tokens=settings.model.max_model_len,
            max_stream_seconds=gate.max_stream_seconds,
            max_concurrent_sequences=sizing.max_num_seqs * engines,
            paths=list(PATHS),
        ),
        cluster=contract.Cluster(
            name=settings.cluster_name,
            account_id=settings.aws.account_id,
            region=settings.aws.region,
            namespace=namespace,
            pool=platform.pool,
        ),
        dashboards=_dashboards(settings),
        weights=contract.Weights(
            bucket=cloud.bucket, prefix=f"{settings.model.weights_prefix}/{settings.model.revision}"
        ),
        plan=contract.PlanVerdict(
            engines_needed=sizing.plan.engines_needed,
            min_engines=engines,
            max_engines=sizing.max_engines,
            nodes=sizing.min_nodes,
            holds=sizing.holds,
            missed=[limit.value for limit in sizing.missed],
            binds=sizing.plan.binds.value,
            sessions_per_engine=sizing.sessions_per_engine,
            itl_p95_ms=_rounded(sizing.prediction.itl_p95_ms),
            tokens_per_second=_rounded(rate),
            verdict=_verdict(sizing),
            waiver=settings.engine.plan_waiver,
        ),
        engine_kind=settings.engine.kind.value,
    )


def publish(values: contract.Outputs, arns: Mapping[str, pulumi.Input[str]]) -> None:
    """Export the contract; `arns` has a value for every field of `contract.Arns`.

    Raises ValueError when a field is missing or unknown.
    """
    expected = set(contract.Arns.model_fields)
    if set(arns) != expected:
        raise ValueError(f"arns = {sorted(arns)}; allowed: {sorted(expected)}; fix: infra/program.py")
    names = {name: contract.Arns.model_fields[name].alias or name for name in arns}
    for name, value in values.exported().items():
        pulumi.export(name, value)
    pulumi.export("arns", {names[name]: arn for name, arn in arns.items()})


def _how_to_get_a_key(settings: Settings) -> str:
    return (
        f"Ask the owner of stack {settings.stack} to add your client to gateway.apiClients and a key for it to the "
        f"secret {identifiers.api_keys_secret(settings)} in AWS Secrets Manager; read it there with your own role."
    )


def _dashboards(settings: Settings) -> contract.Dashboards:
    """Services of the chart kube-prometheus-stack: it cuts its own name to `kube-prometheus-stack`."""
    monitoring = settings.monitoring
    own = settings.charts.prometheus_stack is ChartMode.INSTALL
    alertmanager = own and monitoring.prometheus is not PrometheusKind.AMAZON
    place = f"{METRICS_NAMESPACE}/{PROMETHEUS_STACK.name}"
    return contract.Dashboards(
        kind=monitoring.prometheus.value,
        prometheus=f"{place}-prometheus" if own else None,
        alertmanager=f"{place}-alertmanager" if alertmanager else None,
        alerts_to=monitoring.alert_topic_arn or monitoring.alert_receiver,
        metrics_namespace=monitoring.namespace,
    )


def _verdict(sizing: Sizing) -> str:
    engines = f"{counted(sizing.min_engines, 'engine')} on {counted(sizing.min_nodes, 'node')}"
    if sizing.holds:
        return f"{engines}: the targets hold at peak traffic"
    missed = ", ".join(limit.value for limit in sizing.missed)
    return (
        f"{engines}: missed at peak traffic: {missed}; {counted(sizing.plan.engines_needed, 'engine')} would hold them"
    )


def _rounded(value: float) -> float | None:
    """One decimal; None for what has no bound (prompts arrive faster than they are computed)."""
    return round(value, 1) if math.isfinite(value) else None
