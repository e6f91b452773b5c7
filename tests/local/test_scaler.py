"""The stand-in for KEDA: holds the minimum, refuses what it doesn't know, says that it is a simulation."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pytest

from srvmod.infra.serving.documents.scaler import Scaler as Declared
from srvmod.infra.serving.documents.scaler import scaled_object
from srvmod.local.api import ApiError
from srvmod.local.scaler import MESSAGE, Scaler, problems

SCALE = "/apis/apps/v1/namespaces/serving/deployments/engine/scale"
STATUS = "/apis/keda.sh/v1alpha1/namespaces/serving/scaledobjects/engine/status"


class Api:
    """The API server's answers for one Deployment of `replicas`; None: there is none."""

    def __init__(self, replicas: int | None) -> None:
        self.replicas = replicas
        self.patches: list[tuple[str, Mapping[str, Any]]] = []

    def get_or_none(self, path: str) -> Any:
        assert path == SCALE
        return None if self.replicas is None else {"spec": {"replicas": self.replicas}}

    def patch(self, path: str, change: Mapping[str, Any]) -> None:
        self.patches.append((path, change))
        if path == SCALE:
            self.replicas = change["spec"]["replicas"]


def declared(least: int = 5) -> dict[str, Any]:
    return copy.deepcopy(scaled_object(Declared("serving", least, 12, 40, 2, "http://p:9090")))


def scaler(api: Api, *items: dict[str, Any]) -> Scaler:
    found = Scaler(api)  # type: ignore[arg-type]
    found.objects.objects = {f"serving/{item['metadata']['name']}": item for item in items}
    found.objects.problem = ""
    found.round()
    return found


@pytest.mark.parametrize("replicas", [1, 2, 5, 9])
def test_the_minimum_is_held(replicas: int) -> None:
    api = Api(replicas)
    assert scaler(api, declared()).problem() == ""
    assert api.replicas == 5
    changes = [change for path, change in api.patches if path == SCALE]
    assert changes == ([] if replicas == 5 else [{"spec": {"replicas": 5}}])


def test_its_condition_says_that_it_is_a_simulation_and_is_written_once() -> None:
    api, item = Api(5), declared()
    scaler(api, item)
    [(path, change)] = api.patches
    assert path == STATUS
    [condition] = change["status"]["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == ("Ready", "True", "Simulated")
    assert condition["message"] == MESSAGE
    assert "no metric" in MESSAGE
    again = Api(5)
    scaler(again, {**item, "status": change["status"]})
    assert again.patches == []


BAD: list[tuple[str, Any, str]] = [
    ("triggers.0.type", "cron", "triggers[0]: type 'cron'; allowed: prometheus"),
    ("triggers.0.metadata.unsafeSsl", "true", "metadata.unsafeSsl isn't known here"),
    ("triggers.1.metadata.threshold", "many", "metadata.threshold 'many'; allowed: a number"),
    ("triggers.1.metricType", "Utilization", "metricType 'Utilization'; allowed: AverageValue, Value"),
    ("triggers.1.metricType", "Value", "fallback needs a trigger with metricType AverageValue"),
    ("triggers.0.useCachedMetrics", True, "trigger.useCachedMetrics isn't known here"),
    ("idleReplicaCount", 0, "spec.idleReplicaCount isn't known here"),
    ("minReplicaCount", 13, "minReplicaCount 13, maxReplicaCount 12; allowed: 1 <= minimum <= maximum"),
    ("minReplicaCount", 0, "no scaling to zero"),
    ("scaleTargetRef.kind", "StatefulSet", "scaleTargetRef is a StatefulSet"),
    ("scaleTargetRef.envSourceContainerName", "x", "scaleTargetRef.envSourceContainerName isn't known"),
    ("advanced.scalingModifiers", {}, "advanced.scalingModifiers isn't known"),
    ("fallback.after", 1, "fallback.after isn't known"),
]


@pytest.mark.parametrize(("path", "value", "said"), BAD)
def test_what_it_does_not_know_is_refused_and_scales_nothing(path: str, value: Any, said: str) -> None:
    item, api = declared(), Api(2)
    target: Any = item["spec"]
    *above, last = path.split(".")
    for part in above:
        target = target[int(part)] if part.isdigit() else target[part]
    target[last] = value
    found = scaler(api, item)
    assert said in found.problem()
    assert found.problem().startswith("serving/engine: ")
    assert api.replicas == 2
    [(_, change)] = api.patches
    assert change["status"]["conditions"][0]["status"] == "False"
    assert said in change["status"]["conditions"][0]["message"]


def test_missing_fields_of_a_trigger_are_named() -> None:
    spec = declared()["spec"]
    del spec["triggers"][0]["metadata"]["query"]
    assert list(problems(spec)) == ["triggers[0]: metadata.query is missing"]


def test_a_target_that_is_not_there_is_named() -> None:
    assert scaler(Api(None), declared()).problem() == "serving/engine: there is no Deployment engine"


def test_an_api_server_that_refuses_is_told_and_forgotten_when_it_answers() -> None:
    class Refusing(Api):
        def patch(self, path: str, change: Mapping[str, Any]) -> None:
            raise ApiError(403, "PATCH: 403 not yours")

    api = Refusing(2)
    found = scaler(api, declared())
    assert found.problem() == "serving/engine: PATCH: 403 not yours"
    found.api = Api(2)  # type: ignore[assignment]
    found.round()
    assert found.problem() == ""


def test_an_object_that_is_gone_takes_its_problem_along() -> None:
    found = scaler(Api(None), declared())
    assert found.problem()
    found.objects.objects = {}
    found.round()
    assert found.problem() == ""


def test_it_is_not_healthy_before_it_has_seen_the_objects() -> None:
    assert "can't be watched: starting" in Scaler(Api(1)).problem()  # type: ignore[arg-type]
