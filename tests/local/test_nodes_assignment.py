"""Which Node objects become real machines."""

from __future__ import annotations

from typing import Any

from srvmod.local.nodes.assignment import decide


def node(name: str, *, created: int = 0, instance: str = "p5.48xlarge", **metadata: Any) -> dict[str, Any]:
    labels = {"karpenter.sh/nodepool": "p5-tp4", "node.kubernetes.io/instance-type": instance}
    return {
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "creationTimestamp": f"2026-11-29T10:00:{created:02d}Z",
            "labels": labels,
            **metadata,
        }
    }


def by_name(*nodes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in nodes}


def test_the_oldest_two_get_the_slots_and_the_rest_is_pretended() -> None:
    nodes = by_name(node("c", created=3), node("a", created=2), node("b", created=1))
    decision = decide(nodes, {0: None, 1: None})
    assert decision.occupy == {0: "b", 1: "a"}
    assert decision.pretend == ("c",)
    assert decision.release == ()


def test_nothing_changes_when_all_is_in_place() -> None:
    nodes = by_name(node("a"), node("b"), node("c", annotations={"srvmod.dev/pretended": "true"}))
    decision = decide(nodes, {0: ("a", "uid-a"), 1: ("b", "uid-b")})
    assert (decision.release, dict(decision.occupy), decision.pretend) == ((), {}, ())


def test_a_node_that_is_gone_frees_its_slot_and_a_new_one_waits_for_it() -> None:
    decision = decide(by_name(node("new")), {0: ("old", "uid-old"), 1: ("new2", "uid-new2")})
    assert decision.release == (0, 1)
    assert (dict(decision.occupy), decision.pretend) == ({}, ())


def test_a_node_made_anew_under_the_same_name_is_another_machine() -> None:
    decision = decide(by_name(node("a")), {0: ("a", "uid-of-the-first")})
    assert decision.release == (0,)
    assert decision.pretend == ()


def test_a_node_waits_for_a_slot_that_gets_ready() -> None:
    nodes = by_name(node("a", created=1), node("b", created=2))
    decision = decide(nodes, {}, getting_ready=1)
    assert (dict(decision.occupy), decision.pretend) == ({}, ("b",))


def test_a_node_whose_slot_is_in_work_is_left_alone_and_takes_no_second_one() -> None:
    nodes = by_name(node("a", created=1), node("b", created=2))
    decision = decide(nodes, {1: None}, in_work=["a"])
    assert (dict(decision.occupy), decision.pretend) == ({1: "b"}, ())


def test_other_instance_types_are_pretended_and_foreign_nodes_left_alone() -> None:
    foreign = node("foreign")
    del foreign["metadata"]["labels"]["karpenter.sh/nodepool"]
    decision = decide(by_name(node("small", instance="m7i.large"), foreign), {0: None})
    assert (dict(decision.occupy), decision.pretend) == ({}, ("small",))


def test_a_pretended_node_stays_pretended_when_a_slot_gets_free() -> None:
    pretended = node("a", annotations={"srvmod.dev/pretended": "true"})
    assert dict(decide(by_name(pretended), {0: None}).occupy) == {}


def test_a_leaving_node_gets_no_machine_but_keeps_the_one_it_has() -> None:
    leaving = node("a", deletionTimestamp="2026-11-29T10:01:00Z")
    assert dict(decide(by_name(leaving), {0: None}).occupy) == {}
    assert decide(by_name(leaving), {0: ("a", "uid-a")}).release == ()
