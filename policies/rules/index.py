"""Quick ways from one fact to another, made once per world: large inputs have thousands of each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from srvmod.policies.facts import Known, Policy, Scaler, Service, World


@dataclass(frozen=True)
class Index:
    """Facts by what others know of them."""

    services: dict[tuple[str, str], list[Service]]
    """By one label of the selector."""
    scalers: dict[str, list[Scaler]]
    """By the target's name."""
    policies: dict[tuple[str, str], list[Policy]]
    """By kind and name of a target."""


@lru_cache(maxsize=8)
def index(world: World) -> Index:
    """The index of a world."""
    services: defaultdict[tuple[str, str], list[Service]] = defaultdict(list)
    scalers: defaultdict[str, list[Scaler]] = defaultdict(list)
    policies: defaultdict[tuple[str, str], list[Policy]] = defaultdict(list)
    for service in world.services:
        if service.selector:
            services[min(service.selector.items())].append(service)
    for scaler in world.scalers:
        if isinstance(scaler.target, Known):
            scalers[scaler.target.value].append(scaler)
    for policy in world.policies:
        for target in policy.targets:
            policies[target.kind, target.name].append(policy)
    return Index(dict(services), dict(scalers), dict(policies))
