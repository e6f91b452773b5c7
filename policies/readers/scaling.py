"""Scalers, alert rules, and the metrics that anything in the input asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from srvmod.policies.facts import AlertRule, Known, Maybe, MetricUse, Place, Scaler, Trigger
from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.quantities import duration, quantity, whole
from srvmod.policies.readers.tree import Cursor, place_in_text
from srvmod.policies.readers.yamltext import BadText, documents

RULE_FILE = re.compile(r"(\.|^)(rules|rules\.ya?ml)$")
METRIC = re.compile(r"\bvllm:[a-zA-Z0-9_:]+")
MOST_NAMES = 5_000
PAUSED = "autoscaling.keda.sh/paused"


def scaler(thing: KubeObject) -> Scaler:
    """A ScaledObject or a HorizontalPodAutoscaler."""
    spec = thing.root["spec"]
    target = spec["scaleTargetRef"]
    keda = thing.kind == "ScaledObject"
    behavior = spec.at("advanced", "horizontalPodAutoscalerConfig", "behavior") if keda else spec["behavior"]
    return Scaler(
        place=thing.place,
        kind=thing.kind,
        name=thing.name,
        namespace=thing.namespace,
        target_kind=target["kind"].raw() or "Deployment",
        target=target["name"].string(),
        least=spec["minReplicaCount" if keda else "minReplicas"].integer(),
        most=spec["maxReplicaCount" if keda else "maxReplicas"].integer(),
        window=behavior.at("scaleUp", "stabilizationWindowSeconds").integer(),
        triggers=tuple(_keda(spec) if keda else _hpa(spec)),
        stopped=_stopped(thing.root.at("metadata", "annotations"), behavior["scaleUp"]["selectPolicy"]),
        idle=spec["idleReplicaCount"].integer(),
        fallback=_fallback(spec["fallback"]),
        formula=spec.at("advanced", "scalingModifiers", "formula").string(),
    )


def _stopped(annotations: Cursor, policy: Cursor) -> Known[str] | None:
    for key, child in annotations.entries():
        pauses = key == f"{PAUSED}-replicas" or (key in {PAUSED, f"{PAUSED}-scale-out"} and child.raw() != "false")
        if pauses:
            return Known(f"{key}: {child.raw()}", child.place)
    return Known("scaleUp.selectPolicy: Disabled", policy.place) if policy.raw() == "Disabled" else None


def _fallback(cursor: Cursor) -> Maybe[int]:
    """Replicas of a fallback that may lower the number; two behaviours never do."""
    keeps = cursor["behavior"].raw() in {"currentReplicas", "currentReplicasIfHigher"}
    return None if keeps else cursor["replicas"].integer()


def _keda(spec: Cursor) -> Iterator[Trigger]:
    for one in spec["triggers"].items():
        values = one["metadata"]
        yield Trigger(
            place=one.place,
            kind=one["type"].raw(),
            query=values["query"].string(),
            threshold=quantity(values["threshold"]),
            ignore_missing=values["ignoreNullValues"].boolean(),
        )


def _hpa(spec: Cursor) -> Iterator[Trigger]:
    for one in spec["metrics"].items():
        kind = one["type"].raw()
        part = one[kind[:1].lower() + kind[1:]]
        target = part["target"]
        value = target["averageValue"] or target["value"] or target["averageUtilization"]
        yield Trigger(
            place=one.place,
            kind=kind,
            query=part.at("metric", "name").string() or part["name"].string(),
            threshold=quantity(value),
            ignore_missing=None,
        )


def alerts(thing: KubeObject) -> Iterator[AlertRule]:
    """The rules of a PrometheusRule, or of Prometheus' own rule files in a ConfigMap."""
    if thing.kind != "ConfigMap":
        yield from _rules(thing.root["spec"], thing.namespace)
        return
    for key, child in thing.root["data"].entries():
        if not RULE_FILE.search(key):
            continue
        try:
            roots = [document.root for document in documents(child.raw())]
        except BadText:
            continue
        for root in roots:
            for rule in _rules(Cursor(root, child.place), thing.namespace):
                yield replace(rule, place=place_in_text(child, (rule.place.line or 1) - 1))


def _rules(parent: Cursor, namespace: str) -> Iterator[AlertRule]:
    for group in parent["groups"].items():
        for rule in group["rules"].items():
            yield AlertRule(
                place=rule.place,
                alert=rule["alert"].raw(),
                record=rule["record"].raw(),
                expression=rule["expr"].string(),
                hold=whole(duration(rule["for"]), fractions=True),
                namespace=namespace,
            )


def metric_uses(thing: KubeObject) -> Iterator[MetricUse]:
    """vLLM's metric names in rules, scalers and dashboards."""
    root = thing.root
    cursors: list[Cursor] = []
    if thing.kind == "PrometheusRule":
        cursors = [r["expr"] for g in root.at("spec", "groups").items() for r in g["rules"].items()]
    elif thing.kind == "ScaledObject":
        cursors = [one.at("metadata", "query") for one in root.at("spec", "triggers").items()]
    elif thing.kind == "HorizontalPodAutoscaler":
        for one in root.at("spec", "metrics").items():
            kind = one["type"].raw()
            cursors.append(one[kind[:1].lower() + kind[1:]].at("metric", "name"))
    elif thing.kind == "GrafanaDashboard":
        cursors = [root.at("spec", "json")]
    elif thing.kind == "ConfigMap":
        cursors = [child for key, child in root["data"].entries() if key.endswith((".json", ".yaml", ".yml", ".rules"))]
    for cursor in cursors:
        yield from _names(cursor)


def _names(cursor: Cursor) -> Iterator[MetricUse]:
    text = cursor.raw()
    if "vllm:" not in text:
        return
    seen: set[str] = set()
    for count, match in enumerate(METRIC.finditer(text)):
        if count >= MOST_NAMES:
            return
        name = match[0].rstrip(":")
        # A pattern such as vllm:.* names nothing yet.
        if name in seen or text[match.end() : match.end() + 1] in {".", "*"}:
            continue
        seen.add(name)
        place: Place = place_in_text(cursor, text.count("\n", 0, match.start()))
        yield MetricUse(name, place)
