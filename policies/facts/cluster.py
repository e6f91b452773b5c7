"""What surrounds engines: pools, node classes, routes, proxies' policies, scalers, alerts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from srvmod.policies.facts.values import Fact, Known, Maybe, Place
from srvmod.policies.facts.workloads import Requirement, Toleration


@dataclass(frozen=True, slots=True)
class Taint:
    """A taint that every node of a pool has for as long as it takes pods."""

    key: str
    value: str
    effect: str

    def tolerated_by(self, tolerations: tuple[Toleration, ...]) -> bool:
        """Whether a pod with these tolerations may land (effect PreferNoSchedule never keeps it off)."""
        if self.effect == "PreferNoSchedule":
            return True
        for one in tolerations:
            if one.effect and one.effect != self.effect:
                continue
            if not one.key and one.operator == "Exists":
                return True
            if one.key == self.key and (one.operator == "Exists" or one.value == self.value):
                return True
        return False


@dataclass(frozen=True, slots=True)
class Pool:
    """A Karpenter NodePool."""

    place: Place
    name: str
    labels: Mapping[str, str]
    requirements: tuple[Requirement, ...]
    taints: tuple[Taint, ...]
    node_class: Maybe[str]


@dataclass(frozen=True, slots=True)
class NodeClass:
    """What a pool's nodes run with: an EC2NodeClass. Values are the kubelet's."""

    place: Place
    name: str
    topology_policy: Maybe[str]
    topology_scope: Maybe[str]
    whole_cores: Maybe[str] = None
    """The CPU manager's `full-pcpus-only`, as it is written."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of a proxy, a route or a device plugin that decides whether tokens flow or GPUs stay whole.

    `topic` is a stable word such as `request-timeout`, `stream-idle-timeout`, `buffering`, `compression`,
    `ext-proc-body`, `mig`, `time-slicing`; `value` is as the object says it.
    """

    topic: str
    value: Fact[str]


@dataclass(frozen=True, slots=True)
class Name:
    """An object that another one names. An empty namespace is that of whatever it is applied with."""

    namespace: str
    name: str
    kind: str = ""

    def means(self, other: Name) -> bool:
        """Whether both may be the same object."""
        same = not self.namespace or not other.namespace or self.namespace == other.namespace
        return same and (self.kind, self.name) == (other.kind, other.name)


@dataclass(frozen=True, slots=True)
class Route:
    """An HTTPRoute, GRPCRoute, Ingress or VirtualService rule to a Service. Times in seconds; 0 is no limit."""

    place: Place
    kind: str
    name: str
    namespace: str
    services: tuple[Name, ...]
    paths: tuple[str, ...]
    settings: tuple[Setting, ...]
    parents: tuple[Name, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy of a proxy: BackendTrafficPolicy, ClientTrafficPolicy, EnvoyExtensionPolicy, EnvoyFilter."""

    place: Place
    kind: str
    name: str
    namespace: str
    targets: tuple[Name, ...]
    settings: tuple[Setting, ...]
    selectors: tuple[tuple[str, Mapping[str, str]], ...] = ()
    """(kind, labels) of targets that are chosen by labels; an empty kind stands for the pods of a proxy."""


@dataclass(frozen=True, slots=True)
class Service:
    """A Service and whom it selects."""

    place: Place
    name: str
    namespace: str
    selector: Mapping[str, str]
    settings: tuple[Setting, ...] = ()


@dataclass(frozen=True, slots=True)
class Trigger:
    """What a scaler looks at. `threshold` is in the metric's own unit; times in seconds."""

    place: Place
    kind: str
    query: Maybe[str]
    threshold: Maybe[float]
    ignore_missing: Maybe[bool]
    """KEDA's `ignoreNullValues`: true reads missing data as zero."""


@dataclass(frozen=True, slots=True)
class Scaler:
    """A KEDA ScaledObject or a HorizontalPodAutoscaler."""

    place: Place
    kind: str
    name: str
    namespace: str
    target_kind: str
    target: Maybe[str]
    least: Maybe[int]
    most: Maybe[int]
    window: Maybe[int]
    """Seconds that the condition must hold before it adds pods (stabilisation window of scale-up)."""
    triggers: tuple[Trigger, ...]
    stopped: Known[str] | None = None
    """What keeps it from adding pods at all: it is paused, or its scale-up is disabled."""
    idle: Maybe[int] = None
    """KEDA's `idleReplicaCount`: pods that are left when no trigger is active."""
    fallback: Maybe[int] = None
    """KEDA's `fallback.replicas`, where it may lower the number while the metric can't be read."""
    formula: Maybe[str] = None
    """KEDA's `scalingModifiers.formula`, which takes the place of the triggers' thresholds."""


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One rule of a PrometheusRule; `hold` is its `for` in seconds. `alert` is empty for recording rules."""

    place: Place
    alert: str
    record: str
    expression: Maybe[str]
    hold: Maybe[int]
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class MetricUse:
    """A metric name in a dashboard, rule or scaler."""

    name: str
    place: Place
