"""Objects that bring engines in a way that can't be read: charts, and fields of operators that aren't known here."""

from __future__ import annotations

import re

from srvmod.policies.facts import Unknown
from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.programs import VLLM_OPTIONS
from srvmod.policies.readers.tree import Cursor, Mapping, Scalar, Sequence

ENGINE_CHART = re.compile(r"vllm|kserve|llm-d|text-generation-inference|tritonserver|sglang|nim-llm", re.IGNORECASE)
CHARTS = {
    ("HelmRelease", "helm.toolkit.fluxcd.io"),
    ("HelmChart", "helm.cattle.io"),
    ("Application", "argoproj.io"),
    ("ApplicationSet", "argoproj.io"),
    ("Release", "helm.crossplane.io"),
}
"""(kind, group) of objects that have a controller install a chart."""
CHART_KEYS = {"chart", "name", "url", "repoURL", "path", "repository"}
FIELDS = {"tensorparallelsize", "tensorparallelism", "tensorparallel"}
"""Names of fields that give an engine's tensor parallelism, without their case and punctuation."""
ENGINES = {"vllm", "sglang", "tensorrtllm", "trtllm"}
IMAGE = re.compile(r"(^|/)nim/")
MOST_SEARCHED = 20_000


def reason(thing: KubeObject) -> Unknown | None:
    """Why an object of an unknown kind may run an engine that nobody can judge from it."""
    root = thing.root
    if (thing.kind, thing.group) in CHARTS:
        named = _chart(root["spec"])
        if named is not None:
            return Unknown(f"is made by the chart {named.raw()!r}, which isn't rendered here", named.place)
    found = _field(root["spec"])
    return None if found is None else Unknown(f"is made from fields of a {thing.kind}", found.place)


def _chart(spec: Cursor) -> Cursor | None:
    """A leaf that names a chart of engines, wherever the kind keeps it."""
    for key, child in _leaves(spec):
        if key in CHART_KEYS and ENGINE_CHART.search(child.raw()):
            return child
    return None


def _field(spec: Cursor) -> Cursor | None:
    """The first leaf that sets an engine up."""
    for key, child in _leaves(spec):
        text = child.raw()
        name = re.sub(r"[^a-z]", "", key.lower())
        if (name in FIELDS and text) or VLLM_OPTIONS.match(text) or IMAGE.search(text):
            return child
        if name in {"engine", "runtime", "backend"} and re.sub(r"[^a-z]", "", text.lower()) in ENGINES:
            return child
    return None


def _leaves(root: Cursor) -> list[tuple[str, Cursor]]:
    """(key, leaf) at any depth, in order, up to a bound; a list's leaves have the list's key."""
    found: list[tuple[str, Cursor]] = []
    stack: list[tuple[str, Cursor]] = [("", root)]
    seen: set[int] = set()
    while stack and len(seen) < MOST_SEARCHED:
        key, cursor = stack.pop()
        node = cursor.node
        if isinstance(node, Scalar):
            found.append((key, cursor))
        elif isinstance(node, Mapping) and id(node) not in seen:
            seen.add(id(node))
            stack.extend((name, child) for name, child in reversed(list(cursor.entries())))
        elif isinstance(node, Sequence) and id(node) not in seen:
            seen.add(id(node))
            stack.extend((key, child) for child in reversed(list(cursor.items())))
    return found
