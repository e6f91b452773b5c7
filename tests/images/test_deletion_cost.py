"""Deletion costs: emptier nodes go first, then newer ones; only engines of the own node are touched."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weight_cache.deletion_cost import ANNOTATION, EngineCosts, deletion_cost
from weight_cache.engines import NodeEngines
from weight_cache.errors import PodError
from weight_cache.kube import Answer

CREATED = "2026-11-29T21:00:00Z"
SELECTOR = "app.kubernetes.io/name=engine"


class PodsApi:
    """Pods of one namespace and one node, as the API server answers; `refuse` maps a method to a status."""

    def __init__(self, *pods: dict[str, Any]) -> None:
        self.pods = {pod["metadata"]["name"]: pod for pod in pods}
        self.refuse: dict[str, int] = {}
        self.queries: list[dict[str, list[str]]] = []
        self.patched: list[str] = []

    def call(self, method: str, path: str, body: Any = None, content_type: str | None = None) -> Answer:
        if path == "/api/v1/nodes/n1":
            return Answer(200, {"metadata": {"name": "n1", "creationTimestamp": CREATED}})
        if method in self.refuse:
            return Answer(self.refuse[method], {"message": "refused by the test"})
        split = urlsplit(path)
        if method == "GET" and split.path == "/api/v1/namespaces/serving/pods":
            self.queries.append(parse_qs(split.query))
            return Answer(200, {"items": list(self.pods.values())})
        assert method == "PATCH"
        assert content_type == "application/merge-patch+json"
        name = split.path.removeprefix("/api/v1/namespaces/serving/pods/")
        self.patched.append(name)
        metadata = self.pods[name]["metadata"]
        assert set(body) == {"metadata"}
        assert set(body["metadata"]) == {"uid", "annotations"}
        if body["metadata"]["uid"] != metadata["uid"]:
            return Answer(409, {"message": "Precondition failed: UID in precondition"})
        metadata.setdefault("annotations", {}).update(body["metadata"]["annotations"])
        return Answer(200, self.pods[name])


def pod(name: str, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "uid": f"uid-{name}", **metadata}, "status": {"phase": "Running"}}


def keep(api: PodsApi) -> int:
    engines = NodeEngines(api, "n1", "serving", SELECTOR)
    return EngineCosts(engines).keep(engines.pods())


def test_all_engines_of_the_node_get_the_same_cost_once() -> None:
    api = PodsApi(pod("a"), pod("b", annotations={"other": "stays"}))
    assert keep(api) == 2
    expected = str(deletion_cost(2, datetime.fromisoformat(CREATED), "n1"))
    assert [p["metadata"]["annotations"][ANNOTATION] for p in api.pods.values()] == [expected, expected]
    assert api.pods["b"]["metadata"]["annotations"]["other"] == "stays"
    assert keep(api) == 0
    assert api.patched == ["a", "b"]
    assert api.queries[0]["fieldSelector"] == ["spec.nodeName=n1"]
    assert api.queries[0]["labelSelector"] == [SELECTOR]


def test_engines_that_leave_do_not_count() -> None:
    over = pod("over")
    over["status"]["phase"] = "Failed"
    api = PodsApi(pod("stays"), pod("going", deletionTimestamp=CREATED), over)
    assert keep(api) == 1
    assert api.patched == ["stays"]
    expected = str(deletion_cost(1, datetime.fromisoformat(CREATED), "n1"))
    assert api.pods["stays"]["metadata"]["annotations"][ANNOTATION] == expected


@pytest.mark.parametrize("status", [404, 409])
def test_a_pod_that_is_gone_meanwhile_is_no_error(status: int) -> None:
    api = PodsApi(pod("a"))
    api.refuse["PATCH"] = status
    assert keep(api) == 0


@pytest.mark.parametrize(("method", "words"), [("GET", "verb 'list' on pods"), ("PATCH", "patch pod a.*verb 'patch'")])
def test_refusals_say_what_is_missing(method: str, words: str) -> None:
    api = PodsApi(pod("a"))
    api.refuse[method] = 403
    with pytest.raises(PodError, match=words):
        keep(api)


NOW = datetime(2026, 11, 29, tzinfo=UTC)
moments = st.integers(0, 8 * 365 * 24 * 3600).map(lambda s: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=s))


@given(moments, st.integers(1, 8), st.text("abc0123-", min_size=1))
def test_a_cost_is_an_int32(created: datetime, engines: int, node: str) -> None:
    assert -(2**31) <= deletion_cost(engines, created, node) < 2**31


@pytest.mark.parametrize("created", [datetime(2020, 1, 1, tzinfo=UTC), datetime(2060, 1, 1, tzinfo=UTC)])
def test_wrong_clocks_stay_in_range(created: datetime) -> None:
    assert -(2**31) <= deletion_cost(1, created, "n") < deletion_cost(2, NOW, "n")


@given(moments, moments, st.text("abc0123-", min_size=1), st.text("abc0123-", min_size=1))
def test_half_used_nodes_go_before_full_ones(one: datetime, other: datetime, a: str, b: str) -> None:
    assert deletion_cost(1, one, a) < deletion_cost(2, other, b)


@given(moments, st.integers(16, 10**8), st.text("abc0123-", min_size=1), st.text("abc0123-", min_size=1))
def test_newer_nodes_go_first(created: datetime, seconds: int, a: str, b: str) -> None:
    newer = min(created + timedelta(seconds=seconds), datetime(2034, 1, 1, tzinfo=UTC))
    if newer - created >= timedelta(seconds=16):
        assert deletion_cost(2, newer, a) < deletion_cost(2, created, b)


def test_nodes_of_the_same_second_are_told_apart() -> None:
    values = {deletion_cost(2, NOW, f"ip-10-0-{n}-7.ec2.internal") for n in range(8)}
    assert len(values) > 1
