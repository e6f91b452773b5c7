"""What nodes leave outside the state folder, and its removal. Mounts, network and processes end with the stack's
namespaces; cgroups are the machine's and stay."""

from __future__ import annotations

from srvmod.local.nodes import cgroups
from srvmod.local.nodes.paths import cgroup_root
from srvmod.local.paths import State


class LeftoverError(Exception):
    """Something of the nodes can't be removed; the message names it and what holds it."""


def clean(state: State) -> None:
    """Ends what still runs in the stack's cgroups and removes them. Does nothing when there are none."""
    root = cgroup_root(state)
    left = cgroups.remove(root)
    if left:
        holders = sorted(cgroups.processes(root))
        raise LeftoverError(
            f"cgroups that can't be removed: {', '.join(map(str, left))}"
            + (f"; processes in them that don't end: {', '.join(map(str, holders))}" if holders else "")
        )
