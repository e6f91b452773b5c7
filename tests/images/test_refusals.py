"""Events of engines that refused to start: one for each end, whoever asks how often."""

from typing import Any
from urllib.parse import urlsplit

import pytest
from weight_cache import refusals
from weight_cache.engines import NodeEngines
from weight_cache.errors import PodError
from weight_cache.kube import Answer
from weight_cache.refusals import MESSAGE_BYTES, REASON, Refusals

from srvmod.infra.serving import island_check

ENDED = {"exitCode": 78, "finishedAt": "2026-11-29T21:00:00Z", "message": "IslandCheckFailed: found 3 GPUs\nfound: …"}


class EventsApi:
    """Pods of one node and the events of their namespace; `refuse` maps a method to a status."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.pods = list(pods)
        self.events: dict[str, dict[str, Any]] = {}
        self.refuse: dict[str, int] = {}

    def call(self, method: str, path: str, body: Any = None, content_type: str | None = None) -> Answer:
        if method in self.refuse:
            return Answer(self.refuse[method], {"message": "refused by the test"})
        if method == "GET":
            assert urlsplit(path).path == "/api/v1/namespaces/serving/pods"
            assert "spec.nodeName%3Dn1" in path
            return Answer(200, {"items": self.pods})
        assert (method, path) == ("POST", "/api/v1/namespaces/serving/events")
        if body["metadata"]["name"] in self.events:
            return Answer(409, {"message": "already exists"})
        self.events[body["metadata"]["name"]] = body
        return Answer(201, body)


def pod(name: str, **states: Any) -> dict[str, Any]:
    status = {"name": "engine", **{key: {"terminated": value} for key, value in states.items()}}
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": {"containerStatuses": [status]}}


def tell(api: EventsApi) -> int:
    engines = NodeEngines(api, "n1", "serving", "app.kubernetes.io/name=engine")
    return Refusals(engines).tell(engines.pods())


def test_each_end_is_told_once() -> None:
    again = {**ENDED, "finishedAt": "2026-11-29T21:01:00Z"}
    api = EventsApi(pod("a", lastState=ENDED, state=again), pod("b", state=ENDED))
    assert (tell(api), tell(api)) == (3, 0)
    event = next(event for event in api.events.values() if event["involvedObject"]["name"] == "b")
    assert (event["type"], event["reason"], event["message"]) == ("Warning", REASON, "found 3 GPUs\nfound: …")
    assert event["involvedObject"]["uid"] == "uid-b"
    assert event["involvedObject"]["fieldPath"] == "spec.containers{engine}"
    assert event["lastTimestamp"] == ENDED["finishedAt"]


@pytest.mark.parametrize(
    "found",
    [
        pod("a", state={"exitCode": 1, "message": "CUDA error"}),
        pod("a", lastState={"exitCode": 137}),
        {"metadata": {"name": "a", "uid": "u"}, "status": {}},
        {
            "metadata": {"name": "a", "uid": "u"},
            "status": {"containerStatuses": [{"name": "e", "state": {"running": {}}}]},
        },
    ],
)
def test_other_ends_are_not_told(found: dict[str, Any]) -> None:
    assert tell(EventsApi(found)) == 0


def test_long_messages_are_cut() -> None:
    api = EventsApi(pod("a", state={**ENDED, "message": f"{REASON}: {'é' * 3000}"}))
    tell(api)
    (event,) = api.events.values()
    assert MESSAGE_BYTES - 2 < len(event["message"].encode()) <= MESSAGE_BYTES


@pytest.mark.parametrize(("method", "words"), [("GET", "verb 'list' on pods"), ("POST", "verb 'create' on events")])
def test_refusals_of_the_api_say_what_is_missing(method: str, words: str) -> None:
    api = EventsApi(pod("a", state=ENDED))
    api.refuse[method] = 403
    with pytest.raises(PodError, match=words):
        tell(api)


def test_it_knows_the_checks_own_words(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "termination-log"
    log.touch()
    with pytest.raises(SystemExit):
        island_check.refuse("3 GPUs", [island_check.Problem("MC-HW-01", "a", "b", "c")], log)
    api = EventsApi(pod("a", state={**ENDED, "message": log.read_text()}))
    assert tell(api) == 1
    assert refusals.REASON in capsys.readouterr().err
