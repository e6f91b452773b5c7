"""All facts of some input: what `check` and the Pulumi pack call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from srvmod.policies.engine_versions import DEFAULT_VERSION, Table, table
from srvmod.policies.facts import (
    AlertRule,
    Engine,
    MetricUse,
    NodeClass,
    Place,
    Policy,
    Pool,
    Route,
    Scaler,
    Service,
    Setting,
    Suspect,
    Unread,
    Waiver,
    Workload,
    World,
)
from srvmod.policies.readers import devices, engines, karpenter, kserve, proxies, scaling, sources, waivers
from srvmod.policies.readers.environment import ConfigMaps
from srvmod.policies.readers.objects import KubeObject, of_input, of_node
from srvmod.policies.readers.pods import workload
from srvmod.policies.readers.templates import Template, of_object
from srvmod.policies.readers.tree import Node


@dataclass
class Collector:
    """Takes objects one by one and keeps what the rules need of them."""

    version: str = DEFAULT_VERSION
    maps: ConfigMaps = field(default_factory=ConfigMaps)
    templates: list[tuple[Template, Workload]] = field(default_factory=list[tuple[Template, Workload]])
    runtimes: dict[tuple[str, str], KubeObject] = field(default_factory=dict[tuple[str, str], KubeObject])
    """KServe's runtimes by (namespace, name), an empty namespace for those of the whole cluster."""
    users: list[KubeObject] = field(default_factory=list[KubeObject])
    """InferenceServices that ask for a runtime by name."""
    unread: list[Unread] = field(default_factory=list[Unread])
    waivers: list[Waiver] = field(default_factory=list[Waiver])
    pools: list[Pool] = field(default_factory=list[Pool])
    node_classes: list[NodeClass] = field(default_factory=list[NodeClass])
    routes: list[Route] = field(default_factory=list[Route])
    policies: list[Policy] = field(default_factory=list[Policy])
    services: list[Service] = field(default_factory=list[Service])
    scalers: list[Scaler] = field(default_factory=list[Scaler])
    alerts: list[AlertRule] = field(default_factory=list[AlertRule])
    metrics: list[MetricUse] = field(default_factory=list[MetricUse])
    devices: list[Setting] = field(default_factory=list[Setting])
    files: int = 0
    objects: int = 0

    def add(self, thing: KubeObject | Unread) -> None:
        """One object."""
        if isinstance(thing, Unread):
            self.unread.append(thing)
            return
        self.objects += 1
        self.waivers.extend(waivers.in_annotations(thing))
        self._add_surroundings(thing)
        self.metrics.extend(scaling.metric_uses(thing))
        if thing.kind in kserve.RUNTIMES:
            self.runtimes[thing.namespace, thing.name] = thing
        elif kserve.runtime_name(thing) is not None:
            self.users.append(thing)
        else:
            self._add_templates(thing, of_object(thing))

    def _add_templates(self, thing: KubeObject, templates: Iterable[Template]) -> None:
        for template in templates:
            self.devices.extend(devices.of_template(template))
            self.templates.append((template, workload(thing, template)))

    def _add_kserve(self) -> None:
        """Services and runtimes belong together wherever in the input they are."""
        used = {kserve.runtime_name(one).raw() for one in self.users}  # type: ignore[union-attr]
        for thing in self.users:
            self._add_templates(thing, kserve.merged(thing, self.runtimes))
        for thing in self.runtimes.values():
            if thing.name not in used:
                self._add_templates(thing, kserve.alone(thing))

    def _add_surroundings(self, thing: KubeObject) -> None:
        kind = thing.kind
        if kind == "ConfigMap":
            self.maps.add(thing.namespace, thing.name, thing.root["data"])
            self.devices.extend(devices.of_config_map(thing))
            self.policies.extend(proxies.config_map(thing))
            self.alerts.extend(scaling.alerts(thing))
        elif kind == "ClusterPolicy":
            self.devices.extend(devices.of_cluster_policy(thing))
        elif karpenter.is_pool(thing):
            self.pools.append(karpenter.pool(thing))
            self.devices.extend(devices.of_labels(thing.root.at("spec", "template", "metadata", "labels")))
        elif karpenter.is_node_class(thing):
            self.node_classes.append(karpenter.node_class(thing))
        elif kind in proxies.ROUTES:
            self.routes.extend(proxies.routes(thing))
        elif kind in proxies.POLICIES:
            self.policies.append(proxies.policy(thing))
        elif kind == "Service":
            self.services.append(proxies.service(thing))
        elif kind in {"ScaledObject", "HorizontalPodAutoscaler"}:
            self.scalers.append(scaling.scaler(thing))
        elif kind == "PrometheusRule":
            self.alerts.extend(scaling.alerts(thing))

    def world(self) -> World:
        """Everything that was added, as facts. ConfigMaps count wherever in the input they are."""
        known: Table = table(self.version)
        self._add_kserve()
        found_engines: list[Engine] = []
        suspects: list[Suspect] = []
        for template, owner in self.templates:
            for one in engines.of_template(template, owner, self.maps, known):
                if isinstance(one, Engine):
                    found_engines.append(one)
                else:
                    suspects.append(one)
        return World(
            workloads=tuple(owner for _, owner in self.templates),
            engines=tuple(found_engines),
            suspects=tuple(suspects),
            pools=tuple(self.pools),
            node_classes=tuple(self.node_classes),
            routes=tuple(self.routes),
            policies=tuple(self.policies),
            services=tuple(self.services),
            scalers=tuple(self.scalers),
            alerts=tuple(self.alerts),
            metrics=tuple(self.metrics),
            devices=tuple(self.devices),
            waivers=tuple(self.waivers),
            unread=tuple(self.unread),
            files=self.files,
            objects=self.objects,
        )


def of_paths(paths: Sequence[str], version: str = DEFAULT_VERSION) -> World:
    """Facts of files and folders; "-" is standard input."""
    collector = Collector(version)
    for name in sources.files(paths):
        if isinstance(name, Unread):
            collector.unread.append(name)
            continue
        collector.files += 1
        text = sources.read(name)
        if isinstance(text, Unread):
            collector.unread.append(text)
        else:
            take_text(collector, text)
    return collector.world()


def take_text(collector: Collector, text: sources.Text) -> None:
    """Add every object of a text."""
    collector.waivers.extend(waivers.in_comments(text))
    for one in sources.parse(text):
        if isinstance(one, Unread):
            collector.unread.append(one)
            continue
        for thing in of_input(one):
            collector.add(thing)


def of_text(text: str, source: str = "-", version: str = DEFAULT_VERSION) -> World:
    """Facts of one text."""
    collector = Collector(version, files=1)
    take_text(collector, sources.Text(source, text))
    return collector.world()


def of_trees(trees: Iterable[tuple[str, Node]], version: str = DEFAULT_VERSION) -> World:
    """Facts of objects that were never text: (source, tree), such as a URN and what `tree.from_plain` made of its
    properties."""
    collector = Collector(version)
    for source, node in trees:
        for thing in of_node(node, Place(source)):
            collector.add(thing)
    return collector.world()
