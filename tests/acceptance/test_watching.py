"""The watcher of the scale test, on histories whose verdict is known."""

from typing import Any

from tests.acceptance.watching import DISRUPTED_TAINT, WEIGHTS_TAINT, History


def node(version: int, *taints: str) -> dict[str, Any]:
    return {
        "metadata": {"name": "n1", "resourceVersion": str(version)},
        "spec": {"taints": [{"key": key} for key in taints]},
    }


def pod(version: int, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "p1", "resourceVersion": str(version), **metadata},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Running"},
    }


def seen(*events: dict[str, Any], deleted_last: bool = False, began: int = 0) -> list[str]:
    history = History(began)
    for event in events:
        last = deleted_last and event is events[-1]
        (history.see_pod if "nodeName" in event["spec"] else history.see_node)(event, deleted=last)
    return history.violations()


def test_a_pod_after_the_taint_is_right_whatever_comes_first_to_the_watcher() -> None:
    assert seen(pod(12), node(10, WEIGHTS_TAINT), node(11)) == []


def test_a_pod_before_the_taint_went_is_named() -> None:
    assert seen(node(10, WEIGHTS_TAINT), pod(11), node(12)) == ["p1 came to n1 before its weights were verified"]
    assert seen(node(10, WEIGHTS_TAINT), pod(11)) == ["p1 came to n1 before its weights were verified"]


def test_disruption_after_the_pod_began_to_go_is_right() -> None:
    assert seen(node(1), pod(2), pod(3, deletionTimestamp="now"), node(4, DISRUPTED_TAINT)) == []


def test_disruption_of_a_node_with_an_engine_is_named() -> None:
    assert seen(node(1), pod(2), node(3, DISRUPTED_TAINT), pod(4, deletionTimestamp="now")) == [
        "n1 was disrupted while it held p1"
    ]
    assert seen(node(1), pod(2), node(3), deleted_last=True) == ["n1 was disrupted while it held p1"]


def test_what_was_there_before_the_watch_is_judged_by_what_comes_after() -> None:
    """The version of an object in the first list is that of its last change, not of its coming."""
    assert seen(node(9), pod(5), began=9) == []
    assert seen(node(9), pod(5), node(10, DISRUPTED_TAINT), began=9) == ["n1 was disrupted while it held p1"]
    assert seen(node(9, WEIGHTS_TAINT), pod(10), began=9) == ["p1 came to n1 before its weights were verified"]
