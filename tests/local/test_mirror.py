"""What the local stack's parts see of the cluster: mirrors of watches, and the addresses made of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from srvmod.local import load_balancer
from srvmod.local.api import ApiError, Mirror

Event = tuple[str, dict[str, Any]]
WAIT_SECONDS = 10.0


def named(name: str, namespace: str | None = None, **rest: Any) -> dict[str, Any]:
    place = {"namespace": namespace} if namespace else {}
    return {"metadata": {"name": name, **place}, **rest}


class Watches:
    """An API whose watches give these events, one list per watch; after the last it blocks as a quiet watch does."""

    def __init__(self, *runs: list[Event | ApiError]) -> None:
        self.runs, self.quiet = list(runs), threading.Event()

    def watch(self, path: str) -> Iterator[Event]:
        assert path == "/things"
        for event in self.runs.pop(0):
            if isinstance(event, Exception):
                raise event
            yield event
        if not self.runs:
            self.quiet.set()
            threading.Event().wait()


def mirrored(*runs: list[Event | ApiError]) -> Mirror:
    api = Watches(*runs)
    found = Mirror(api, "/things", lambda: None)  # type: ignore[arg-type]
    found.start()
    assert api.quiet.wait(WAIT_SECONDS)
    return found


def test_a_mirror_follows_what_comes_changes_and_goes() -> None:
    found = mirrored(
        [
            ("ADDED", named("a", "n", value=1)),
            ("ADDED", named("b", "n")),
            ("SYNCED", {}),
            ("MODIFIED", named("a", "n", value=2)),
            ("DELETED", named("b", "n")),
            ("ADDED", named("c")),
        ]
    )
    assert sorted(found.objects) == ["c", "n/a"]
    assert found.objects["n/a"]["value"] == 2
    assert found.synced
    assert found.problem == ""


def test_a_mirror_lives_through_any_fault_and_says_so() -> None:
    odd: Any = ValueError("half an answer")
    found = mirrored([("ADDED", named("a")), odd], [("ADDED", named("b")), ("SYNCED", {})])
    assert sorted(found.objects) == ["b"]


def test_what_is_known_stays_while_the_server_is_away_and_what_went_meanwhile_goes_with_the_next_list() -> None:
    away = ApiError(0, "refused")
    both: list[Event | ApiError] = [("ADDED", named("a")), ("ADDED", named("b")), ("SYNCED", {}), away]
    found = mirrored(both, [("ADDED", named("b")), away], [])
    assert sorted(found.objects) == ["a", "b"], "a list that broke off changes nothing"
    assert sorted(mirrored(both, [("ADDED", named("b")), ("SYNCED", {})]).objects) == ["b"]


class Patched:
    """An API that takes patches."""

    def __init__(self) -> None:
        self.patches: list[tuple[str, Mapping[str, Any]]] = []

    def patch(self, path: str, change: Mapping[str, Any]) -> None:
        self.patches.append((path, change))


def piece(name: str, service: str, ready: Mapping[str, bool], port: int | None = 8080) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "envoy", "labels": {"kubernetes.io/service-name": service}},
        "ports": [{"port": port}] if port else None,
        "endpoints": [
            {"addresses": [address], "conditions": {"ready": is_ready}} for address, is_ready in ready.items()
        ],
    }


def service(name: str, kind: str = "LoadBalancer", address: str = "", made: str = "T1") -> dict[str, Any]:
    status = {"loadBalancer": {"ingress": [{"ip": address}]}} if address else {"loadBalancer": {}}
    return {
        "metadata": {"name": name, "namespace": "envoy", "creationTimestamp": made},
        "spec": {"type": kind},
        "status": status,
    }


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> load_balancer.Services:
    monkeypatch.setattr(load_balancer, "Api", lambda kubeconfig: Patched())
    found = load_balancer.Services(Path("none"), load_balancer.Targets())
    found.services.synced = found.slices.synced = True
    return found


def test_only_ready_endpoints_of_load_balanced_services_are_targets(services: load_balancer.Services) -> None:
    services.services.objects = {
        "envoy/lb": service("lb", address="10.88.0.100"),
        "envoy/in": service("in", "ClusterIP"),
    }
    services.slices.objects = {
        "envoy/1": piece("1", "lb", {"10.0.0.1": True, "10.0.0.2": False}),
        "envoy/2": piece("2", "in", {"10.0.0.3": True}),
        "envoy/3": piece("3", "lb", {"10.0.0.4": True}, port=None),
    }
    services.refresh()
    assert services.targets.addresses == [("10.0.0.1", 8080)]
    assert services.api.patches == []  # type: ignore[attr-defined]


def test_each_service_gets_an_address_that_no_other_has(services: load_balancer.Services) -> None:
    services.services.objects = {
        "envoy/old": service("old", address="10.88.0.100"),
        "envoy/a": service("a"),
        "envoy/b": service("b"),
    }
    services.refresh()
    given = [change["status"]["loadBalancer"]["ingress"][0]["ip"] for _, change in services.api.patches]  # type: ignore[attr-defined]
    assert given == ["10.88.0.101", "10.88.0.102"]


def test_of_two_services_the_newest_is_led_to_and_the_other_is_named(services: load_balancer.Services) -> None:
    services.services.problem = services.slices.problem = ""
    services.services.objects = {
        "envoy/old": service("old", address="10.88.0.100", made="T1"),
        "envoy/new": service("new", address="10.88.0.101", made="T2"),
    }
    services.slices.objects = {
        "envoy/1": piece("1", "old", {"10.0.0.1": True}),
        "envoy/2": piece("2", "new", {"10.0.0.2": True}),
    }
    services.refresh()
    assert services.targets.addresses == [("10.0.0.2", 8080)]
    assert "envoy/old lead nowhere" in services.problem()
    del services.services.objects["envoy/old"]  # type: ignore[attr-defined]
    services.refresh()
    assert services.problem() == ""


def test_nothing_is_forgotten_before_all_was_seen(services: load_balancer.Services) -> None:
    services.targets.addresses, services.slices.synced = [("10.0.0.1", 8080)], False
    services.refresh()
    assert services.targets.addresses == [("10.0.0.1", 8080)]


def test_a_load_balancer_that_sees_nothing_is_not_healthy(services: load_balancer.Services) -> None:
    assert services.problem() == "/api/v1/services can't be watched: starting"
    services.services.problem = ""
    services.slices.problem = "refused"
    assert services.problem() == "/apis/discovery.k8s.io/v1/endpointslices can't be watched: refused"
    services.slices.problem = ""
    assert services.problem() == ""
    services.refused = "PATCH services/lb: 403"
    assert services.problem() == "PATCH services/lb: 403"
