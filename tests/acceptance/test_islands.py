"""INV-SRVMOD-03 on the real kubelets: engines get whole islands, and what doesn't fit one is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.conftest import Stack, eventually

ISLANDS = [[0, 1, 2, 3], [4, 5, 6, 7]]


def gpu_pod(name: str, node: str, gpus: int) -> dict[str, Any]:
    """A pod of the pause image that asks for GPUs on one node, past scheduler and taints."""
    limits = {"cpu": "1", "memory": "64Mi", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeName": node,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "tolerations": [{"operator": "Exists"}],
            "containers": [
                {
                    "name": "c",
                    "image": "docker.io/srvmod/pause:local",
                    "imagePullPolicy": "Never",
                    "resources": {"limits": limits},
                }
            ],
        },
    }


def real_node_with_engines(stack: Stack) -> dict[str, Any]:
    return next(n for n in stack.status()["nodes"] if not n["pretended"] and len(n["engines"]) == 2)


def test_each_engine_has_one_whole_island(stack: Stack) -> None:
    node = real_node_with_engines(stack)
    assert sorted(engine["gpus"] for engine in node["engines"]) == ISLANDS


def test_the_engine_itself_sees_its_island(stack: Stack) -> None:
    for engine in real_node_with_engines(stack)["engines"]:
        seen = stack.kubectl(
            "-n", "serving", "exec", engine["name"], "-c", "engine", "--", "printenv", "NVIDIA_VISIBLE_DEVICES"
        ).strip()
        assert [int(d.rpartition("-")[2]) for d in seen.split(",")] == engine["gpus"]


def apply(stack: Stack, *pods: dict[str, Any]) -> None:
    stack.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(pods)}))


@pytest.fixture(scope="module")
def free_node(stack: Stack) -> Iterator[str]:
    """Name of a real node with eight free GPUs: Karpenter launches it for a pod without GPUs that shuns engines."""
    engines = {
        "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "engine"}},
        "namespaces": ["serving"],
        "topologyKey": "kubernetes.io/hostname",
    }
    holder = gpu_pod("holder", "", 0)
    del holder["spec"]["nodeName"], holder["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    holder["spec"]["nodeSelector"] = {"srvmod.dev/pool": "p5-tp4"}
    holder["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [engines]}}
    apply(stack, holder)
    try:
        eventually("the holder runs", 120, lambda: stack.get("pod", "holder")["status"]["phase"] == "Running")
        yield stack.get("pod", "holder")["spec"]["nodeName"]
    finally:
        stack.kubectl("delete", "pod", "--all", "--grace-period=0", "--force", "--wait=false")


def outcome(stack: Stack, name: str) -> str:
    """`Running`, or the reason for which the kubelet refused the pod; empty while undecided."""
    status = stack.get("pod", name)["status"]
    return status.get("reason", "") if status["phase"] == "Failed" else status["phase"].replace("Pending", "")


def test_six_gpus_fit_no_island(stack: Stack, free_node: str) -> None:
    apply(stack, gpu_pod("six", free_node, 6))
    assert eventually("six is decided", 60, lambda: outcome(stack, "six")) == "TopologyAffinityError"
    stack.kubectl("delete", "pod", "six", "--force", "--grace-period=0")


def test_a_fragmented_node_refuses_what_only_both_islands_could_hold(stack: Stack, free_node: str) -> None:
    """3 + 3 GPUs leave one free on each island: two are free, and no island can give them."""
    for name in ("three-a", "three-b"):
        apply(stack, gpu_pod(name, free_node, 3))
        assert eventually(f"{name} is decided", 60, lambda name=name: outcome(stack, name)) == "Running"
    apply(stack, gpu_pod("two", free_node, 2))
    assert eventually("two is decided", 60, lambda: outcome(stack, "two")) == "TopologyAffinityError"
    apply(stack, gpu_pod("one", free_node, 1))
    assert eventually("one is decided", 60, lambda: outcome(stack, "one")) == "Running"
