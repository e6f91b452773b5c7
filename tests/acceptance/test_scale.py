"""Engines 2 → 5 → 2 through the stack's config: Karpenter adds and removes whole nodes, and only those."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.conftest import Stack, eventually
from tests.acceptance.watching import Watching


def set_minimum(stack: Stack, folder: Path, engines: int) -> None:
    file = stack.config_file(folder, lambda config: config["srvmod:engine"].update(minEngines=engines))
    stack.pulumi("up", "--yes", "--skip-preview", "--stack", "local", "--config-file", str(file))


def per_node(stack: Stack) -> list[int]:
    """Ready engines per p5 node, most first."""
    return sorted((sum(e["ready"] for e in n["engines"]) for n in stack.status()["nodes"]), reverse=True)


def test_two_five_two(stack: Stack, tmp_path: Path) -> None:
    eventually("one node with two engines", 120, lambda: per_node(stack) == [2])
    with Watching(stack) as watching:
        set_minimum(stack, tmp_path, 5)
        eventually("five engines on three nodes", 400, lambda: per_node(stack) == [2, 2, 1])
        nodes = stack.status()["nodes"]
        assert [n["pretended"] for n in nodes].count(False) == 2
        assert all(n["weightsReady"] for n in nodes)
        set_minimum(stack, tmp_path, 2)
        eventually("exactly one node is left, full", 400, lambda: per_node(stack) == [2])
    seen = watching.history
    assert len(seen.pods) >= 5
    assert len([node for node in seen.nodes.values() if node.disrupted is not None]) == 2
    assert not seen.violations(), "\n".join(seen.violations())
    assert stack.pulumi("preview", "--stack", "local", "--expect-no-changes")
