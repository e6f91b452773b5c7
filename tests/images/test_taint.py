"""Lifting the startup taint: only that one, and never over somebody else's change."""

import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weight_cache.errors import NodeError
from weight_cache.taint import DEFAULT_TAINT, lift_taint, removal_patch

from .stand_ins import MemoryApi

COLD = {"key": DEFAULT_TAINT, "value": "true", "effect": "NoSchedule"}
POOL = {"key": "srvmod.dev/tp4", "value": "true", "effect": "NoSchedule"}
OTHER = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute", "timeAdded": "2026-01-01T00:00:00Z"}


def _lift(api: MemoryApi, node: str = "n1") -> bool:
    return lift_taint(api, node, DEFAULT_TAINT, threading.Event(), pause=0)


def test_only_the_startup_taint_goes() -> None:
    api = MemoryApi([POOL, COLD, OTHER])
    assert _lift(api)
    assert api.node["spec"]["taints"] == [POOL, OTHER]
    assert [operation["op"] for operation in api.patches[0]] == ["test", "remove"]


@pytest.mark.parametrize("taints", [None, [], [POOL]])
def test_nothing_is_patched_when_it_is_not_there(taints: list[dict[str, Any]] | None) -> None:
    api = MemoryApi(taints)
    assert not _lift(api)
    assert api.patches == []


def test_conflicts_are_tried_again() -> None:
    api = MemoryApi([COLD])
    api.conflicts = 3
    assert _lift(api)
    assert api.node["spec"]["taints"] == []


def test_a_change_between_read_and_patch_is_read_again() -> None:
    api = MemoryApi([POOL, COLD])
    changed = False

    def someone_else() -> None:
        nonlocal changed
        if not changed:
            changed = True
            api.node["spec"]["taints"] = [COLD]

    api.before_patch = someone_else
    assert _lift(api)
    assert api.node["spec"]["taints"] == []
    assert len(api.patches) == 2


def test_a_list_that_changes_all_the_time_is_an_error() -> None:
    api = MemoryApi([COLD])
    api.conflicts = 100
    with pytest.raises(NodeError, match="something changes it all the time"):
        _lift(api)


@pytest.mark.parametrize(("status", "words"), [(401, "token"), (403, "verb 'get' on nodes"), (500, "HTTP 500")])
def test_refusals_say_what_is_missing(status: int, words: str) -> None:
    api = MemoryApi([COLD])
    api.status = status
    with pytest.raises(NodeError, match=words):
        _lift(api)


def test_an_unknown_node_is_named() -> None:
    with pytest.raises(NodeError, match=r"get node elsewhere: HTTP 404.*spec\.nodeName"):
        _lift(MemoryApi([COLD]), "elsewhere")


@given(st.lists(st.sampled_from([COLD, POOL, OTHER, {**COLD, "effect": "NoExecute"}])))
def test_applying_the_patch_removes_exactly_that_key(taints: list[dict[str, Any]]) -> None:
    left = [*taints]
    for operation in removal_patch(taints, DEFAULT_TAINT):
        index = int(operation["path"].rsplit("/", 1)[1])
        if operation["op"] == "test":
            assert left[index] == operation["value"]
        else:
            del left[index]
    assert left == [taint for taint in taints if taint["key"] != DEFAULT_TAINT]
