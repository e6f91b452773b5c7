"""The scaler and its arithmetic: when engines are added, held and let go."""

import re
from dataclasses import replace

import jsonschema
import pytest

from srvmod.contract import ITL_P95_MS, SCALE_OUT_AFTER_SECONDS, SCALE_OUT_ITL_MS
from srvmod.infra.platform.documents import gateway
from srvmod.infra.serving.documents import engine_flags, metrics, scaler
from srvmod.infra.serving.documents.scaler import Scaler, scaled_object
from tests.infra.environment import ENVIRONMENTS, graph, settings_of
from tests.infra.test_crds import schemas

SCALER = Scaler("serving", least=8, most=12, sessions_per_engine=82, engines_per_node=2, address="http://p:9090")
SPEC = scaled_object(SCALER)["spec"]
LATENCY, SESSIONS = SPEC["triggers"]
BEHAVIOR = SPEC["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
HPA_TOLERANCE = 0.1
"""The HorizontalPodAutoscaler does nothing while value / target is within 10 % of 1."""


def asked(p95: float | None) -> float:
    """What the latency query gives for a 95th percentile in seconds, None for no token: its four arms, read from it."""
    arms = LATENCY["metadata"]["query"].split("\nor ")
    quantile = r"histogram_quantile\(.*?\[60s\]\)\)\)"
    shapes = (
        rf"([\d.]+) \* \({quantile} > ([\d.]+)\)",
        rf"0 \* \({quantile} >= ([\d.]+)\) \+ ([\d.]+)",
        rf"\({quantile} >= 0\)",
        r"0 \* sum\(rate\(.*\)\)",
    )
    breach, hold, low, idle = (re.fullmatch(shape, arm) for shape, arm in zip(shapes, arms, strict=True))
    assert breach
    assert hold
    assert low
    assert idle
    if p95 is None:
        return 0.0
    if p95 > float(breach[2]):
        return float(breach[1]) * p95
    return float(hold[2]) if p95 >= float(hold[1]) else p95


def wanted(p95: float | None, ready: int) -> int:
    """The HPA's wish for a metric of type Value, in milli-units as KEDA gives it."""
    ratio = int((asked(p95)) * 1000 + 1e-9) / int(float(LATENCY["metadata"]["threshold"]) * 1000 + 1e-9)
    return ready if abs(ratio - 1) <= HPA_TOLERANCE else -int(-ratio * ready // 1)


def test_a_breach_adds_engines_beyond_the_tolerance() -> None:
    assert LATENCY["metadata"]["threshold"] == f"{SCALE_OUT_ITL_MS.value / 1e3:g}"
    assert LATENCY["metricType"] == "Value"
    for p95 in (0.0381, 0.039, 0.041, 0.08):
        assert wanted(p95, 8) > 8, p95


@pytest.mark.parametrize("p95", [0.02, 0.025, 0.03, 0.033, 0.0379])
def test_near_and_above_its_target_nothing_is_taken_away(p95: float) -> None:
    """A plain threshold of 38 ms would remove engines at 33 ms, above the target of 30 ms."""
    assert wanted(p95, 8) == 8
    assert wanted(p95, 1) == 1


def test_low_latency_and_silence_let_engines_go() -> None:
    assert wanted(0.012, 10) < 10
    assert wanted(None, 10) == 0, "the minimum and the sessions decide then"


def test_the_query_looks_back_a_minute_and_acts_at_once() -> None:
    query = LATENCY["metadata"]["query"]
    assert set(re.findall(r"\[(\w+)\]", query)) == {f"{SCALE_OUT_AFTER_SECONDS.value:g}s"}
    assert BEHAVIOR["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert SCALE_OUT_AFTER_SECONDS.value / metrics.SCRAPE_SECONDS >= 4
    assert SPEC["pollingInterval"] == metrics.SCRAPE_SECONDS


def test_missing_data_is_an_error_and_holds_what_runs() -> None:
    for trigger in SPEC["triggers"]:
        assert trigger["metadata"]["ignoreNullValues"] == "false"
    assert SPEC["fallback"]["behavior"] == "currentReplicasIfHigher"
    assert SPEC["fallback"]["replicas"] == SPEC["minReplicaCount"] == 8
    assert SESSIONS["metricType"] == "AverageValue", "KEDA refuses a fallback without one"


def test_steps_fit_the_time_that_an_engine_needs() -> None:
    up, down = BEHAVIOR["scaleUp"], BEHAVIOR["scaleDown"]
    assert {policy["periodSeconds"] for policy in up["policies"]} == {scaler.ENGINE_START_SECONDS}
    assert down["stabilizationWindowSeconds"] > scaler.ENGINE_START_SECONDS
    [policy] = down["policies"]
    assert (policy["type"], policy["value"]) == ("Pods", 2), "whole nodes go"
    assert policy["periodSeconds"] > scaler.ENGINE_START_SECONDS
    # What the API server of Kubernetes takes.
    assert max(policy["periodSeconds"] for policy in (*up["policies"], *down["policies"])) <= 1800
    assert down["stabilizationWindowSeconds"] <= 3600


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_peak_traffic_asks_for_the_plan_and_no_more(env: str) -> None:
    """Sessions as declared, shared as planned, are the plan's engines: neither trigger adds to them."""
    settings = settings_of(env)
    [found] = graph(env).of_type("kubernetes:keda.sh/v1alpha1:ScaledObject")
    share = int(found.inputs["spec"]["triggers"][1]["metadata"]["threshold"])
    engines = -(-settings.traffic.sessions // share)
    assert engines <= settings.sizing.plan.engines
    assert found.inputs["spec"]["minReplicaCount"] == settings.sizing.min_engines
    [deployment] = graph(env).of_type("kubernetes:apps/v1:Deployment")
    assert deployment.inputs["metadata"]["annotations"]["srvmod.dev/engines"] == str(settings.sizing.min_engines)


def test_scaler_and_alerts_have_exact_bucket_edges() -> None:
    buckets = engine_flags.histogram_buckets(0.0255, 0.3)
    itl = buckets.partition('"inter_token_latency":[')[2].partition("]")[0].split(",")
    assert {"0.0255", f"{ITL_P95_MS.value / 1e3:g}", f"{SCALE_OUT_ITL_MS.value / 1e3:g}"} <= set(itl)
    assert itl == sorted(itl, key=float)


def test_a_managed_prometheus_is_asked_with_kedas_own_role() -> None:
    managed = scaled_object(
        Scaler("serving", 2, 4, 40, 2, "https://aps/workspaces/ws-1", amazon_region="eu-west-1"),
    )["spec"]
    for trigger in managed["triggers"]:
        assert trigger["metadata"]["awsRegion"] == "eu-west-1"
        assert trigger["authenticationRef"] == {"name": "engine"}
    identity = scaler.trigger_authentication("serving")
    assert identity["metadata"]["name"] == "engine"
    assert identity["spec"] == {"podIdentity": {"provider": "aws"}}
    assert all("authenticationRef" not in trigger for trigger in SPEC["triggers"])


def test_envoy_follows_its_cpu_where_a_range_is_given() -> None:
    """The HPA owns the replicas then; what Envoy Gateway's CRD doesn't know would be dropped silently."""
    fixed = gateway.Gateway("serving", 3, "envoy:1", "LoadBalancer")
    for spec, most in ((fixed, None), (replace(fixed, max_replicas=9), 9)):
        proxy = gateway.envoy_proxy(spec)
        kubernetes = proxy["spec"]["provider"]["kubernetes"]
        assert ("replicas" in kubernetes["envoyDeployment"]) == (most is None)
        assert kubernetes.get("envoyHpa", {}).get("maxReplicas") == most
        assert kubernetes.get("envoyHpa", {"minReplicas": 3})["minReplicas"] == 3
        schema = schemas()[proxy["apiVersion"], proxy["kind"]]
        assert [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(proxy)] == []
