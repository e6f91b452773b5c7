"""Verdicts on what a stack declares: the gate's own part between the engine's calls and the rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from srvmod.contract import Clause
from srvmod.policies.check import Result, judged
from srvmod.policies.config import Config
from srvmod.policies.facts import Place, Unknown, World
from srvmod.policies.pack.properties import UNKNOWN, kubernetes_object, tree, unknowns
from srvmod.policies.readers.tree import Mapping as MappingNode
from srvmod.policies.readers.tree import Node, Scalar
from srvmod.policies.readers.unreadable import ENGINE_CHART
from srvmod.policies.readers.world import of_trees
from srvmod.policies.rules import RULES, Finding, Maker, Severity

HIDDEN = "what can't be read may be set to anything"
BY_KIND: Mapping[str, Clause] = {
    "NodePool": Clause.INV_SRVMOD_03,
    "EC2NodeClass": Clause.INV_SRVMOD_03,
    "ConfigMap": Clause.INV_SRVMOD_03,
    "ScaledObject": Clause.INV_SRVMOD_02,
    "HorizontalPodAutoscaler": Clause.INV_SRVMOD_02,
    "PrometheusRule": Clause.INV_SRVMOD_02,
    "Service": Clause.MC_SE_01,
    "Ingress": Clause.MC_SE_01,
    "HTTPRoute": Clause.MC_SE_01,
    "GRPCRoute": Clause.MC_SE_01,
    "VirtualService": Clause.MC_SE_01,
    "BackendTrafficPolicy": Clause.MC_SE_01,
    "ClientTrafficPolicy": Clause.MC_SE_01,
    "EnvoyExtensionPolicy": Clause.MC_SE_01,
    "EnvoyPatchPolicy": Clause.MC_SE_01,
    "EnvoyFilter": Clause.MC_SE_01,
    "EnvoyProxy": Clause.MC_SE_01,
}
"""The clause that an unreadable part of an object stands in the way of; anything with pods: MC-HW-01."""
RULE = "readable"
CHARTS = ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v3:Chart", "kubernetes:helm.sh/v4:Chart")
PER_OBJECT = frozenset({
    "tensor-parallel", "gpus", "one-engine", "instance-type", "kv-block", "kv-dtype", "weights", "iteration-level",
    "allowed-engine", "simulated-engine", "chunked-prefill", "one-node", "nvlink", "visible-devices",
    "stream-interval", "openai-api", "smooth-steps", "measured", "drafts",
})  # fmt: skip
"""Rules whose violations no other object can undo: they are reported on the resource, before it is made."""


@dataclass
class Declared:
    """What the stack's resources declare, by URN, as the engine handed it to the resource policies.

    A stack policy gets outputs; on a first preview, with no cluster to ask, those of Kubernetes objects are empty, and
    rules on them would find nothing. So what is judged together is what was declared.
    """

    seen: set[str] = field(default_factory=set[str])
    objects: dict[str, Node] = field(default_factory=dict[str, Node])
    charts: dict[str, Node] = field(default_factory=dict[str, Node])
    reported: set[tuple[str, str, str, str]] = field(default_factory=set[tuple[str, str, str, str]])
    """Violations that a resource policy has shown already."""

    def add(self, urn: str, resource_type: str, properties: object) -> Node | None:
        """Keep a resource; its tree if it is a Kubernetes object."""
        self.seen.add(urn)
        if resource_type in CHARTS:
            self.charts[urn] = tree(properties)
        node = kubernetes_object(resource_type, properties)
        if node is not None:
            self.objects[urn] = node
        return node


def of_resource(urn: str, node: Node, config: Config) -> list[Finding]:
    """Violations of one object that stay, whatever else the stack has."""
    result = _result([(urn, node)], config.model_copy(update={"whole": False}))
    return [one for one in result.findings if one.severity is Severity.ERROR and one.rule in PER_OBJECT]


def of_stack(resources: Iterable[tuple[str, str, object]], declared: Declared, config: Config) -> Result:
    """The verdict on (URN, type, outputs) of all resources, judged together on what they declared."""
    trees: list[tuple[str, Node]] = []
    charts: list[tuple[str, Node]] = []
    for urn, resource_type, outputs in resources:
        if resource_type in CHARTS:
            charts.append((urn, declared.charts[urn] if urn in declared.charts else tree(outputs)))
            continue
        node = declared.objects.get(urn)
        if node is None and urn not in declared.seen:
            node = kubernetes_object(resource_type, outputs)
        if node is not None:
            nothing = not isinstance(node, MappingNode) or not node.entries.keys() - {"apiVersion", "kind"}
            trees.append((urn, MappingNode({}, {}, None) if nothing else node))
    return _result(trees, config, charts)


def key(finding: Finding) -> tuple[str, str, str, str]:
    """What makes a finding the same one in both kinds of policy."""
    return (finding.clause.value, finding.rule, finding.place.source, finding.what)


def _result(trees: list[tuple[str, Node]], config: Config, charts: Iterable[tuple[str, Node]] = ()) -> Result:
    world = of_trees(trees, config.engine_version)

    def unreadable(world: World, config: Config) -> Iterator[Finding]:
        del world, config
        for urn, node in trees:
            yield from _hidden(urn, node)
        for urn, node in charts:
            yield from _chart(urn, node)

    return judged(world, config, rules=(*RULES, unreadable))


def _hidden(urn: str, node: Node) -> Iterator[Finding]:
    """Unknown parts that a reader wanted to look into, and objects of which nothing is known."""
    kind = _text(node, "kind")
    maker = Maker(BY_KIND.get(kind, Clause.MC_HW_01), RULE, HIDDEN)
    if not kind:
        yield maker.unknown("the resource", Unknown("none of its properties are known", Place(urn)))
    places = dict.fromkeys(place for one in unknowns(node) for place in one.overlooked)
    for place in places:
        yield maker.unknown(place.path or "the object", Unknown(UNKNOWN, place), "a plain value instead of an Output")


def _chart(urn: str, node: Node) -> Iterator[Finding]:
    """Charts that bring engines: their objects are made out of the engine's sight."""
    named = f"{_text(node, 'chart')} {_text(node, 'name')}"
    if ENGINE_CHART.search(named):
        why = Unknown(f"the chart {named.strip()!r} makes objects that a pack isn't shown", Place(urn))
        fix = "declare the engine's Deployment, or run `srvmod check` on `helm template`'s output"
        yield Maker(Clause.INV_SRVMOD_01, RULE, HIDDEN).unknown("its engines", why, fix)


def _text(node: Node, name: str) -> str:
    child = node.entries.get(name) if isinstance(node, MappingNode) else None
    return child.text if isinstance(child, Scalar) else ""
