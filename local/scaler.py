"""Stands in for KEDA, whose build is too large for one machine: holds each ScaledObject's minimum on its target.

A simulation: no metric is asked for, so nothing ever goes above `minReplicaCount`; each object's Ready condition says
so. It takes what the program declares and refuses the rest, as KEDA's own webhook and scalers do: a ScaledObject with a
trigger type or a field that this file doesn't know isn't scaled at all, and the component's health names it.
Targets are changed through their scale subresource, as an autoscaler does it.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from srvmod.local.api import Api, ApiError, Mirror
from srvmod.local.health import answer_health

log = logging.getLogger(__name__)

HEALTH = ("127.0.0.1", 9182)
SCALED_OBJECTS = "/apis/keda.sh/v1alpha1/scaledobjects"
LOOK_SECONDS = 2.0
STALLED_SECONDS = 15.0
MESSAGE = "simulated: minReplicaCount is held on the target, no metric is asked for"

KNOWN: Mapping[str, frozenset[str]] = {
    "spec": frozenset(
        {"scaleTargetRef", "minReplicaCount", "maxReplicaCount", "pollingInterval", "fallback", "advanced", "triggers"}
    ),
    "scaleTargetRef": frozenset({"apiVersion", "kind", "name"}),
    "fallback": frozenset({"failureThreshold", "replicas", "behavior"}),
    "advanced": frozenset({"horizontalPodAutoscalerConfig"}),
    "horizontalPodAutoscalerConfig": frozenset({"name", "behavior"}),
    "trigger": frozenset({"type", "name", "metricType", "metadata", "authenticationRef"}),
}
"""Fields that are understood, all others are refused."""
PROMETHEUS = frozenset({"serverAddress", "query", "threshold", "ignoreNullValues", "awsRegion"})
"""Of KEDA's Prometheus trigger (keda v2.21 pkg/scalers/prometheus_scaler.go), what the program uses."""
NEEDED = frozenset({"serverAddress", "query", "threshold"})
METRIC_TYPES = frozenset({"Value", "AverageValue"})


def problems(spec: Mapping[str, Any]) -> Iterator[str]:
    """What of a ScaledObject's spec this stand-in, or KEDA, would not take."""
    target, fallback = spec["scaleTargetRef"], spec.get("fallback", {})
    advanced = spec.get("advanced", {})
    for name, part in (
        ("spec", spec),
        ("scaleTargetRef", target),
        ("fallback", fallback),
        ("advanced", advanced),
        ("horizontalPodAutoscalerConfig", advanced.get("horizontalPodAutoscalerConfig", {})),
    ):
        yield from _unknown(name, part, KNOWN[name])
    if (target.get("apiVersion", "apps/v1"), target.get("kind", "Deployment")) != ("apps/v1", "Deployment"):
        yield f"scaleTargetRef is a {target.get('kind')} of {target.get('apiVersion')}; allowed: Deployment of apps/v1"
    least, most = spec.get("minReplicaCount", 0), spec.get("maxReplicaCount", 100)
    if not 1 <= least <= most:
        yield f"minReplicaCount {least}, maxReplicaCount {most}; allowed: 1 <= minimum <= maximum (no scaling to zero)"
    triggers = spec["triggers"]
    for index, trigger in enumerate(triggers):
        yield from (f"triggers[{index}]: {problem}" for problem in _of_trigger(trigger))
    if fallback and all(trigger.get("metricType") == "Value" for trigger in triggers):
        yield "fallback needs a trigger with metricType AverageValue (KEDA's webhook refuses it otherwise)"


def _of_trigger(trigger: Mapping[str, Any]) -> Iterator[str]:
    if trigger["type"] != "prometheus":
        yield f"type {trigger['type']!r}; allowed: prometheus"
        return
    metadata = trigger["metadata"]
    yield from _unknown("trigger", trigger, KNOWN["trigger"])
    yield from _unknown("metadata", metadata, PROMETHEUS)
    for name in sorted(NEEDED - metadata.keys()):
        yield f"metadata.{name} is missing"
    if trigger.get("metricType", "AverageValue") not in METRIC_TYPES:
        yield f"metricType {trigger['metricType']!r}; allowed: {', '.join(sorted(METRIC_TYPES))}"
    try:
        float(metadata.get("threshold", "0"))
    except ValueError:
        yield f"metadata.threshold {metadata['threshold']!r}; allowed: a number as text"


def _unknown(place: str, part: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
    for name in sorted(part.keys() - known):
        yield f"{place}.{name} isn't known here; allowed: {', '.join(sorted(known))}"


class Scaler:
    """Watches ScaledObjects and sets their targets. One thread watches, another looks after the targets."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.failures: dict[str, str] = {}
        self.last_round = 0.0
        self._changed = threading.Event()
        self.objects = Mirror(api, SCALED_OBJECTS, self._changed.set)

    def run(self) -> None:
        """Works until the process ends."""
        self.objects.start()
        while True:
            self._changed.wait(LOOK_SECONDS)
            self._changed.clear()
            if self.objects.synced:
                self.round()

    def problem(self) -> str:
        """Why it isn't healthy; empty when it is."""
        if self.objects.problem:
            return f"ScaledObjects can't be watched: {self.objects.problem}"
        if time.monotonic() - self.last_round > STALLED_SECONDS:
            return f"no progress for more than {STALLED_SECONDS:.0f} s"
        return "; ".join(f"{name}: {failure}" for name, failure in sorted(self.failures.items()))

    def round(self) -> None:
        """Looks at every ScaledObject once."""
        failures: dict[str, str] = {}
        for name, item in self.objects.objects.items():
            try:
                failure = "; ".join(problems(item["spec"])) or self._hold(item)
                self._report(item, failure)
            except ApiError as error:
                failure = str(error)
            if failure:
                failures[name] = failure
                if failure != self.failures.get(name):
                    log.warning("%s: %s", name, failure)
        self.failures = failures
        self.last_round = time.monotonic()

    def _hold(self, item: Mapping[str, Any]) -> str:
        """Sets the target's replicas to the minimum; returns why it can't, or nothing."""
        spec, namespace = item["spec"], item["metadata"]["namespace"]
        target, least = spec["scaleTargetRef"]["name"], spec["minReplicaCount"]
        path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{target}/scale"
        scale = self.api.get_or_none(path)
        if scale is None:
            return f"there is no Deployment {target}"
        replicas = scale["spec"].get("replicas", 0)
        if replicas != least:
            self.api.patch(path, {"spec": {"replicas": least}})
            log.info("%s/%s: %d -> %d engines", namespace, target, replicas, least)
        return ""

    def _report(self, item: Mapping[str, Any], failure: str) -> None:
        """Writes the object's Ready condition when it isn't that already."""
        wanted = {
            "type": "Ready",
            "status": "False" if failure else "True",
            "reason": "Refused" if failure else "Simulated",
            "message": failure or MESSAGE,
        }
        if wanted in item.get("status", {}).get("conditions", []):
            return
        meta = item["metadata"]
        path = f"/apis/keda.sh/v1alpha1/namespaces/{meta['namespace']}/scaledobjects/{meta['name']}/status"
        self.api.patch(path, {"status": {"conditions": [wanted]}})


def main() -> None:
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    scaler = Scaler(Api(Path(sys.argv[1])))
    answer_health(HEALTH, scaler.problem)
    scaler.run()


if __name__ == "__main__":
    main()
