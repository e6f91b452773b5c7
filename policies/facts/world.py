"""Everything that was read in one run: what the rules judge."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

from srvmod.policies.facts.cluster import AlertRule, MetricUse, NodeClass, Policy, Pool, Route, Scaler, Service, Setting
from srvmod.policies.facts.values import Place
from srvmod.policies.facts.workloads import Engine, Suspect, Workload


@dataclass(frozen=True, slots=True)
class Unread:
    """Input that can't be read: what and why, with its place. Never silently left out."""

    place: Place
    why: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Waiver:
    """An accepted deviation: a clause, a reason and a last day, in a comment or an annotation.

    It covers findings of `clause` on `line` of the file (`line` None: anywhere in `object`).
    """

    clause: str
    until: date | None
    reason: str
    place: Place
    line: int | None
    object: str
    problem: str = ""
    """Why it can't be used, when a part is missing."""


@dataclass(frozen=True, eq=False)
class World:
    """All facts of one run, in the order of reading. Two worlds are never equal: what is derived is kept by world."""

    workloads: tuple[Workload, ...] = ()
    engines: tuple[Engine, ...] = ()
    suspects: tuple[Suspect, ...] = ()
    pools: tuple[Pool, ...] = ()
    node_classes: tuple[NodeClass, ...] = ()
    routes: tuple[Route, ...] = ()
    policies: tuple[Policy, ...] = ()
    services: tuple[Service, ...] = ()
    scalers: tuple[Scaler, ...] = ()
    alerts: tuple[AlertRule, ...] = ()
    metrics: tuple[MetricUse, ...] = ()
    devices: tuple[Setting, ...] = ()
    """Settings of GPU device plugins and operators: MIG and time-slicing."""
    waivers: tuple[Waiver, ...] = ()
    unread: tuple[Unread, ...] = ()
    files: int = 0
    objects: int = 0
