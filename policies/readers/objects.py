"""Kubernetes objects in documents: lists and templates are unpacked, what isn't an object is left out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from srvmod.policies.facts import Place, Unread
from srvmod.policies.readers.sources import RENDER, Input
from srvmod.policies.readers.tree import Cursor, Mapping, Node, Sequence

DEEPEST_LIST = 8
KUSTOMIZATION = re.compile(r"kustomization(\.ya?ml)?", re.IGNORECASE)
# A kustomization of only these gives the same objects as the files it names.
HARMLESS_KUSTOMIZE = {
    "apiVersion", "kind", "metadata", "resources", "namespace", "labels", "commonLabels", "commonAnnotations",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class KubeObject:
    """One object: its identity and a cursor on its root."""

    kind: str
    api_version: str
    name: str
    namespace: str
    root: Cursor

    @property
    def group(self) -> str:
        """API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]

    @property
    def place(self) -> Place:
        """The object's own place."""
        return self.root.place


def of_input(one: Input) -> Iterator[KubeObject | Unread]:
    """The objects of a document. A kustomization may leave out what it is: its file's name says it."""
    place = Place(one.source, one.document.line)
    if KUSTOMIZATION.fullmatch(one.source.replace("\\", "/").rpartition("/")[2]):
        return iter(list(_kustomization(Cursor(one.document.root, place))))
    return of_node(one.document.root, place)


def of_node(node: Node | None, place: Place, depth: int = 0) -> Iterator[KubeObject | Unread]:
    """The objects of a tree: of a JSON array, of a List, of an OpenShift Template, or the one that it is."""
    if depth > DEEPEST_LIST:
        yield Unread(place, f"holds lists in lists, more than {DEEPEST_LIST} deep")
        return
    if isinstance(node, Sequence):
        for item in node.items:
            yield from of_node(item, place.at(item.line or place.line, ""), depth + 1)
        return
    if not isinstance(node, Mapping):
        return
    root = Cursor(node, place)
    kind, version = root["kind"].raw(), root["apiVersion"].raw()
    if not kind or not version:
        if "kind" not in node.entries and isinstance(root["groups"].node, Sequence):
            # Prometheus' own rule file: what a PrometheusRule has as its spec.
            yield KubeObject("PrometheusRule", "", "", "", Cursor(Mapping({"spec": node}, {}, node.line), place))
        return
    members = "objects" if kind == "Template" and "template.openshift.io" in version else "items"
    if (kind == "List" or kind.endswith("List") or members == "objects") and isinstance(
        node.entries.get(members), Sequence
    ):
        for item in root[members].items():
            yield from of_node(item.node, Place(place.source, item.place.line), depth + 1)
        return
    name = root.at("metadata", "name").raw() or root.at("metadata", "generateName").raw()
    if kind in {"Kustomization", "Component"} and version.startswith("kustomize.config.k8s.io"):
        yield from _kustomization(root)
        return
    namespace = root.at("metadata", "namespace").raw()
    shown = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
    at = Place(place.source, root["kind"].place.line or node.line, shown)
    yield KubeObject(kind, version, name, namespace, Cursor(node, at))


def _kustomization(root: Cursor) -> Iterator[Unread]:
    for key, child in root.entries():
        if key not in HARMLESS_KUSTOMIZE and child:
            yield Unread(
                child.place, f"is a kustomization that isn't built: '{key}' changes what its files say", RENDER
            )
            return
