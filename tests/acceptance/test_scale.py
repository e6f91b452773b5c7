"""Engines 2 → 5 → 2 through the stack's config: Karpenter adds and removes whole nodes, and only those."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from tests.acceptance.conftest import Stack, eventually

WEIGHTS_TAINT = "srvmod.dev/weights-cold"


class Watcher(threading.Thread):
    """Looks at the cluster several times a second and keeps what must never be seen."""

    def __init__(self, stack: Stack) -> None:
        super().__init__(daemon=True)
        self.stack, self.over, self.wrong = stack, threading.Event(), []

    def run(self) -> None:
        while not self.over.is_set():
            nodes = {n["metadata"]["name"]: n for n in self.stack.get("nodes")["items"]}
            for pod in self.stack.get("pods", "-n", "serving", "-l", "app.kubernetes.io/name=engine")["items"]:
                self.look(pod, nodes.get(pod["spec"].get("nodeName", "")))
            time.sleep(0.2)

    def look(self, pod: dict[str, Any], node: dict[str, Any] | None) -> None:
        if (
            node is None
            or pod["metadata"].get("deletionTimestamp")
            or pod["status"]["phase"] in ("Failed", "Succeeded")
        ):
            return
        taints = {t["key"] for t in node["spec"].get("taints", [])}
        if WEIGHTS_TAINT in taints:
            self.wrong.append(
                f"{pod['metadata']['name']} is on {node['metadata']['name']} before its weights were verified"
            )
        if "karpenter.sh/disrupted" in taints:
            self.wrong.append(f"{node['metadata']['name']} is disrupted while it holds {pod['metadata']['name']}")


def set_minimum(stack: Stack, folder: Path, engines: int) -> None:
    file = stack.config_file(folder, lambda config: config["srvmod:engine"].update(minEngines=engines))
    stack.pulumi("up", "--yes", "--skip-preview", "--stack", "local", "--config-file", str(file))


def per_node(stack: Stack) -> list[int]:
    """Ready engines per p5 node, most first."""
    return sorted((sum(e["ready"] for e in n["engines"]) for n in stack.status()["nodes"]), reverse=True)


def test_two_five_two(stack: Stack, tmp_path: Path) -> None:
    eventually("one node with two engines", 120, lambda: per_node(stack) == [2])
    watcher = Watcher(stack)
    watcher.start()
    try:
        set_minimum(stack, tmp_path, 5)
        eventually("five engines on three nodes", 240, lambda: per_node(stack) == [2, 2, 1])
        nodes = stack.status()["nodes"]
        assert [n["pretended"] for n in nodes].count(False) == 2
        assert all(n["weightsReady"] for n in nodes)
        set_minimum(stack, tmp_path, 2)
        eventually("exactly one node is left, full", 300, lambda: per_node(stack) == [2])
    finally:
        watcher.over.set()
        watcher.join(10)
    assert not watcher.wrong, "\n".join(sorted(set(watcher.wrong)))
    assert stack.pulumi("preview", "--stack", "local", "--expect-no-changes")
