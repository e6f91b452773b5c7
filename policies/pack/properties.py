"""A resource's properties, as the engine shows them to a pack, as a tree that the readers take."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Mapping as MappingABC
from collections.abc import Sequence as SequenceABC
from typing import cast

from pulumi_policy.proxy import UnknownValueError

from srvmod.policies.readers.tree import Mapping, Node, Opaque, Scalar, Sequence, from_plain

UNKNOWN = "isn't known at preview"
KUBERNETES = "kubernetes:"
RULE_GROUPS = "aws:amp/ruleGroupNamespace:RuleGroupNamespace"
COMPONENTS = ("kubernetes:yaml", "kubernetes:helm.sh", "kubernetes:kustomize", "kubernetes:index")
"""Types that stand for other objects: their children are resources of their own, or a chart's, out of sight."""


def tree(value: object) -> Node:
    """A tree of what a pack gets. A value that isn't known yet is an Opaque, wherever it stands."""
    if isinstance(value, MappingABC):
        pairs = cast("MappingABC[object, object]", value)
        return Mapping({str(key): _child(pairs, key) for key in pairs}, {}, None)
    if isinstance(value, SequenceABC) and not isinstance(value, str | bytes):
        items = cast("SequenceABC[object]", value)
        return Sequence([_child(items, index) for index in range(len(items))], None)
    return from_plain(value)


def _child(parent: object, key: object) -> Node:
    """The proxies of a pack raise where an unknown value is touched."""
    try:
        return tree(parent[key])  # type: ignore[index] # pyright: ignore
    except UnknownValueError:
        return Opaque(UNKNOWN)


def kubernetes_object(resource_type: str, properties: object) -> Node | None:
    """The object that a resource declares; None for what isn't a Kubernetes object. Rule groups of Amazon's Prometheus
    are read as the ConfigMap of a rule file.

    Kind and API version come from the type where the properties don't say them: they can't be hidden by an Output.
    """
    if resource_type == RULE_GROUPS:
        return _rule_file(tree(properties))
    if not resource_type.startswith(KUBERNETES) or resource_type.startswith(COMPONENTS):
        return None
    node = tree(properties)
    if not isinstance(node, Mapping):
        return None
    group_version, _, kind = resource_type.removeprefix(KUBERNETES).rpartition(":")
    version = group_version.removeprefix("core/")
    for key, value in (("apiVersion", version), ("kind", kind)):
        if not isinstance(node.entries.get(key), Scalar):
            node.entries[key] = Scalar(value, False, None)
    return node


def _rule_file(node: Node) -> Node | None:
    if not isinstance(node, Mapping):
        return None

    def text(value: str) -> Scalar:
        return Scalar(value, False, None)

    name, data = node.entries.get("name", text("")), node.entries.get("data", text(""))
    parts: dict[str, Node] = {
        "apiVersion": text("v1"),
        "kind": text("ConfigMap"),
        "metadata": Mapping({"name": name}, {}, None),
        "data": Mapping({"amazon.rules.yaml": data}, {}, None),
    }
    return Mapping(parts, {}, None)


def unknowns(node: Node) -> Iterator[Opaque]:
    """Every unknown of a tree."""
    if isinstance(node, Opaque):
        yield node
    elif isinstance(node, Mapping):
        for child in node.entries.values():
            yield from unknowns(child)
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from unknowns(item)
