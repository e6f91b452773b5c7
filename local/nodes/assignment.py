"""Which Node objects get a real machine. Pure: nodes and slots in, decisions out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

PRETENDED = "srvmod.dev/pretended"
NODEPOOL_LABEL = "karpenter.sh/nodepool"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"
REAL_INSTANCE_TYPE = "p5.48xlarge"


@dataclass(frozen=True)
class Decision:
    """`release`: slots whose Node is gone. `occupy`: slot -> Node name. `pretend`: names of Nodes to mark."""

    release: tuple[int, ...]
    occupy: Mapping[int, str]
    pretend: tuple[str, ...]


def decide(
    nodes: Mapping[str, Mapping[str, Any]],
    slots: Mapping[int, tuple[str, str] | None],
    getting_ready: int = 0,
    in_work: Collection[str] = (),
) -> Decision:
    """`nodes`: Node objects by name. `slots`: who holds each slot, as (name, uid), or None when it is free.

    `getting_ready` is the number of further slots that are being prepared. They, and slots that are released now,
    count as free only at a later decision; meanwhile a Node that would fit in one waits rather than be pretended.
    `in_work` names Nodes of still other slots, about which nothing is to be decided now.
    """
    release = tuple(
        number
        for number, holder in sorted(slots.items())
        if holder is not None and nodes.get(holder[0], {}).get("metadata", {}).get("uid") != holder[1]
    )
    free = [number for number, holder in sorted(slots.items()) if holder is None]
    coming_free = len(release) + getting_ready
    held = {holder[0] for number, holder in slots.items() if holder is not None and number not in release}
    held |= set(in_work)
    occupy: dict[int, str] = {}
    pretend: list[str] = []
    for node in in_order(nodes.values()):
        name = node["metadata"]["name"]
        if name in held or is_pretended(node) or not is_karpenters(node) or is_leaving(node):
            continue
        if instance_type(node) == REAL_INSTANCE_TYPE:
            if free:
                occupy[free.pop(0)] = name
                continue
            if coming_free:
                coming_free -= 1
                continue
        pretend.append(name)
    return Decision(release, occupy, tuple(pretend))


def in_order(nodes: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Oldest first."""
    return sorted(nodes, key=lambda node: (node["metadata"].get("creationTimestamp", ""), node["metadata"]["name"]))


def is_pretended(node: Mapping[str, Any]) -> bool:
    return (node["metadata"].get("annotations") or {}).get(PRETENDED) == "true"


def is_karpenters(node: Mapping[str, Any]) -> bool:
    return NODEPOOL_LABEL in (node["metadata"].get("labels") or {})


def is_leaving(node: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in node["metadata"]


def instance_type(node: Mapping[str, Any]) -> str:
    return (node["metadata"].get("labels") or {}).get(INSTANCE_TYPE_LABEL, "")
