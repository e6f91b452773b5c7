"""The island check on the real kubelets: engines run behind it, and a fragmented allocation ends in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from srvmod.infra.serving.island_check import REFUSED
from tests.acceptance.conftest import Stack, eventually
from tests.acceptance.test_islands import gpu_pod

pytestmark = pytest.mark.acceptance
LOOSE = "loose"
"""A pool whose kubelets don't align GPUs: what a wrong NodeConfig makes of the engines' pool. Its nodes have the same
labels, so that the node's agent runs there too, and one of their own."""
LOOSE_LABEL = "srvmod.dev/loose"


def apply(stack: Stack, *objects: dict[str, Any]) -> None:
    stack.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))


def copied(stack: Stack, kind: str) -> dict[str, Any]:
    """The engines' pool or node class, as a new object of another name."""
    found = stack.get(kind, "p5-tp4")
    return {**{key: found[key] for key in ("apiVersion", "kind", "spec")}, "metadata": {"name": LOOSE}}


def engine_container(stack: Stack) -> dict[str, Any]:
    """The engine's container as its Deployment has it, without weights and probes and with less memory."""
    spec = stack.get("-n", "serving", "deployment", "engine")["spec"]["template"]["spec"]
    container = next(c for c in spec["containers"] if c["name"] == "engine")
    keep = {
        key: container[key] for key in ("name", "image", "imagePullPolicy", "command", "args", "env", "securityContext")
    }
    keep["resources"] = {"limits": {"cpu": "1", "memory": "512Mi", "nvidia.com/gpu": "4"}}
    keep["terminationMessagePolicy"] = container["terminationMessagePolicy"]
    keep["volumeMounts"] = [m for m in container["volumeMounts"] if m["name"] == "island-check"]
    return keep


def engine_pod(stack: Stack, name: str, node: str) -> dict[str, Any]:
    pod = gpu_pod(name, node, 4)
    pod["metadata"] |= {"namespace": "serving", "labels": {"app.kubernetes.io/name": "engine"}}
    pod["spec"]["containers"] = [engine_container(stack)]
    pod["spec"]["volumes"] = [{"name": "island-check", "configMap": {"name": "island-check"}}]
    return pod


@pytest.fixture(scope="module")
def without_admission(stack: Stack) -> Iterator[None]:
    """Admission refuses such a pool and such engines: here it is somebody who took the policies' bindings away."""
    names = ("srvmod-pools", "srvmod-engines")
    kept = [stack.get("validatingadmissionpolicybinding", name) for name in names]
    stack.kubectl("delete", "validatingadmissionpolicybinding", *names)
    yield
    for binding in kept:
        binding["metadata"] = {key: binding["metadata"][key] for key in ("name", "labels", "annotations")
                               if key in binding["metadata"]}  # fmt: skip
    apply(stack, *kept)


@pytest.fixture(scope="module")
def loose_node(stack: Stack, without_admission: None) -> Iterator[str]:
    """Name of a real node whose kubelet aligns nothing."""
    del without_admission
    node_class, pool = copied(stack, "ec2nodeclass"), copied(stack, "nodepool")
    config = yaml.safe_load(node_class["spec"]["userData"])
    config["spec"]["kubelet"]["config"]["topologyManagerPolicy"] = "none"
    node_class["spec"]["userData"] = yaml.safe_dump(config)
    template = pool["spec"]["template"]
    template["metadata"]["labels"][LOOSE_LABEL] = "true"
    template["spec"]["nodeClassRef"]["name"] = LOOSE
    holder = gpu_pod("holder-loose", "", 0)
    del holder["spec"]["nodeName"], holder["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
    holder["spec"]["nodeSelector"] = {LOOSE_LABEL: "true"}
    apply(stack, node_class, pool, holder)
    try:
        eventually("the holder runs", 180, lambda: stack.get("pod", "holder-loose")["status"]["phase"] == "Running")
        name = stack.get("pod", "holder-loose")["spec"]["nodeName"]
        assert not next(n for n in stack.status()["nodes"] if n["name"] == name)["pretended"], "no real slot was free"
        eventually(
            "the node offers its GPUs",
            60,
            lambda: stack.get("node", name)["status"]["allocatable"].get("nvidia.com/gpu") == "8",
        )
        yield name
    finally:
        for namespace in ("default", "serving"):
            names = [
                pod["metadata"]["name"]
                for pod in stack.get("-n", namespace, "pods")["items"]
                if pod["metadata"]["name"].endswith(LOOSE)
            ]
            if names:
                stack.kubectl("-n", namespace, "delete", "pod", *names, "--grace-period=0", "--force", "--wait=false")
        stack.kubectl("delete", "nodepool", LOOSE, "--wait=false")
        eventually("the node is gone", 120, lambda: not stack.get("nodes", "-l", LOOSE_LABEL)["items"])
        stack.kubectl("delete", "ec2nodeclass", LOOSE, "--wait=false")


def test_every_engine_passed_the_check(stack: Stack) -> None:
    engines = [engine for node in stack.status()["nodes"] if not node["pretended"] for engine in node["engines"]]
    assert len(engines) == 2
    for engine in engines:
        log = stack.kubectl("-n", "serving", "logs", engine["name"], "-c", "engine")
        line = log.splitlines()[0]
        assert line.startswith("island check passed (PRETENDED machine in /run/srvmod/p5): GPU0 "), log[:500]
        island = engine["gpus"][0] // 4
        assert line.count(f" NUMA {island},") + line.count(f" NUMA {island};") == 4, line


def test_whole_islands_pass_where_nothing_is_aligned(stack: Stack, loose_node: str) -> None:
    """The same pod passes while the plugin can still give it an island: it ends later, for want of weights."""
    apply(stack, engine_pod(stack, "whole-loose", loose_node))
    state = terminated(stack, "whole-loose")
    assert state["exitCode"] != REFUSED
    assert "island check passed" in stack.kubectl("-n", "serving", "logs", "whole-loose")
    stack.kubectl("-n", "serving", "delete", "pod", "whole-loose", "--grace-period=0", "--force")


def test_a_fragmented_allocation_ends_in_the_check(stack: Stack, loose_node: str) -> None:
    """2 + 2 + 2 GPUs, then the first two leave: two are free on each island, and this kubelet gives all four."""
    for name in ("a-loose", "b-loose", "c-loose"):
        apply(stack, gpu_pod(name, loose_node, 2))
        eventually(f"{name} runs", 60, lambda name=name: stack.get("pod", name)["status"]["phase"] == "Running")
    stack.kubectl("delete", "pod", "a-loose", "--grace-period=0", "--force")
    apply(stack, engine_pod(stack, "torn-loose", loose_node))
    state = terminated(stack, "torn-loose")
    assert state["exitCode"] == REFUSED, state
    assert state["message"].startswith("IslandCheckFailed: "), state
    assert "INV-SRVMOD-03: found GPUs on NUMA node 0 (" in state["message"]
    assert " and NUMA node 1 (" in state["message"]
    assert "topologyManagerPolicy single-numa-node" in state["message"]
    assert "srvmod_engine" not in stack.kubectl("-n", "serving", "logs", "torn-loose"), "the engine was started"
    event = eventually("the node's agent tells of it", 60, lambda: refusal(stack, "torn-loose"))
    assert event["type"] == "Warning"
    assert " and NUMA node 1 (" in event["message"]


def refusal(stack: Stack, pod: str) -> dict[str, Any] | None:
    """The Event of the island check for a pod."""
    events = stack.get("-n", "serving", "events", f"--field-selector=involvedObject.name={pod}")["items"]
    return next((event for event in events if event["reason"] == "IslandCheckFailed"), None)


def terminated(stack: Stack, name: str) -> dict[str, Any]:
    """How the pod's container ended."""

    def ended() -> Any:
        statuses = stack.get("-n", "serving", "pod", name)["status"].get("containerStatuses") or [{}]
        return statuses[0].get("state", {}).get("terminated")

    return eventually(f"{name} has ended", 90, ended)
