"""Real Kubernetes nodes on one machine that believe they are p5.48xlarge.

Each node is a slot: a mount namespace of its own with containerd, kubelet and the pretended GPU plugin in it, its
own cgroup root, its own NVMe folder and its own part of the pod network. `launcher` gives Karpenter's Node objects
to slots. The static CPU manager is the one thing that can't work on pretended CPUs: it is left out, and the node
says so in an annotation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from srvmod.local.nodes.host import Problem

# Imported where they are used: the processes of a node import this package too and need none of it.


def check_host(state_root: Path) -> list[Problem]:
    """What this machine lacks for the nodes, each with why and how to mend it; empty when nodes can run.

    Starts nothing and changes nothing. `state_root` is the stack's state folder, which may not exist yet.
    """
    from srvmod.local.nodes.host import check

    return check(state_root)


def prepare(state_root: Path, tools: Mapping[str, Path], progress: Callable[[str], None] = lambda line: None) -> None:
    """Packs the images that the nodes run, as far as they changed. Raises `images.layer.PackingError`.

    `tools` are built programs by name; crane and envoy-gateway are needed.
    """
    from srvmod.local.nodes.images.pack import pack
    from srvmod.local.paths import State

    pack(State(state_root), tools, progress)


def cleanup(state_root: Path) -> None:
    """Removes what the nodes of this state folder left outside it. May be called at any time and again.

    Call it after the stack's namespaces ended. Raises `leftovers.LeftoverError` that names what can't be removed.
    """
    from srvmod.local.nodes.leftovers import clean
    from srvmod.local.paths import State

    clean(State(state_root))


def processes(state_root: Path) -> dict[str, dict[str, int | None]]:
    """Per Node name its machine's processes with the pid that was last started, None where there is none.

    Pids are those of the stack's pid namespace (`facts.inner_pids` translates them); whether they still run is for
    the caller to see.
    """
    from srvmod.local.nodes.view import processes as view

    return view(state_root)
