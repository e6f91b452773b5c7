"""KServe: an InferenceService is its runtime's container with what it says itself laid over it."""

from __future__ import annotations

from collections.abc import Mapping as MappingABC
from dataclasses import replace

from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.templates import Template, of_object
from srvmod.policies.readers.tree import Cursor, Mapping, Node, Scalar, Sequence

RUNTIMES = {"ServingRuntime", "ClusterServingRuntime"}
ADDED = ("args", "env", "volumeMounts")
"""Lists to which the service adds; everything else that it says replaces the runtime's."""
NOT_OF_A_CONTAINER = {"modelFormat", "runtime", "storageUri", "storage", "protocolVersion"}


def runtime_name(thing: KubeObject) -> Cursor | None:
    """The runtime that an InferenceService asks for by name."""
    named = thing.root.at("spec", "predictor", "model", "runtime")
    return named if thing.kind == "InferenceService" and named.raw() else None


def alone(thing: KubeObject) -> list[Template]:
    """A runtime that no service of the input uses: what it gives is judged, what it leaves out may be given later."""
    missing = "the InferenceService that uses this runtime may add options"
    return [replace(one, open_words=missing) for one in of_object(thing)]


def merged(thing: KubeObject, runtimes: MappingABC[tuple[str, str], KubeObject]) -> list[Template]:
    """An InferenceService with its runtime; without it, any option may be given."""
    templates = of_object(thing)
    named = runtime_name(thing)
    if named is None:
        return templates
    name = named.raw()
    runtime = runtimes.get((thing.namespace, name)) or runtimes.get(("", name))
    if runtime is None:
        why = f"the runtime {name!r} isn't in the input"
        return [replace(one, open_words=why) for one in templates]
    spec = runtime.root["spec"]
    container = spec["containers"][0]
    predictor = thing.root.at("spec", "predictor")
    elsewhere = runtime.place.source != thing.place.source
    inner, outer = (_moved(one.node, named.place.line) if elsewhere else one.node for one in (container, spec))
    single = Cursor(_over(inner, predictor["model"].node), predictor["model"].place)
    pod = Cursor(_over(outer, predictor.node), predictor.place)
    return [replace(one, spec=pod, single=single, declared=()) for one in templates]


def _over(base: Node | None, own: Node | None) -> Node | None:
    """A mapping with another one's entries over its own."""
    if not isinstance(base, Mapping) or not isinstance(own, Mapping):
        return own or base
    entries, lines = dict(base.entries), dict(base.lines)
    for key, value in own.entries.items():
        before = entries.get(key)
        if key in NOT_OF_A_CONTAINER:
            continue
        entries[key] = value
        if key in ADDED and isinstance(before, Sequence) and isinstance(value, Sequence):
            entries[key] = Sequence([*before.items, *value.items], value.line)
        if key in own.lines:
            lines[key] = own.lines[key]
    return Mapping(entries, lines, own.line)


def _moved(node: Node | None, line: int | None) -> Node | None:
    """A tree of another file: its lines mean nothing beside this file's name, so all are the line that names it."""
    if isinstance(node, Mapping):
        entries = {key: _moved(child, line) or child for key, child in node.entries.items()}
        return Mapping(entries, {} if line is None else dict.fromkeys(entries, line), line)
    if isinstance(node, Sequence):
        return Sequence([_moved(item, line) or item for item in node.items], line)
    return replace(node, line=line, block=False) if isinstance(node, Scalar) else node
