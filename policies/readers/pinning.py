"""CPUs that a kubelet's static CPU manager gives to one container alone."""

from __future__ import annotations

from collections.abc import Iterator

from srvmod.policies.facts import Amount, Fact, Known, Unknown
from srvmod.policies.readers.quantities import quantity, whole
from srvmod.policies.readers.tree import Cursor

MILLIS = 1000


def exclusive_cpus(spec: Cursor) -> tuple[Fact[int], ...]:
    """CPUs in thousandths of each container that gets its own: whole ones in a Guaranteed pod, init containers too.

    Empty where the pod isn't Guaranteed, or has resources of its own, which the CPU manager leaves to the shared CPUs
    (pkg/kubelet/cm/cpumanager/policy_static.go of Kubernetes 1.36). One Unknown where that can't be told.
    """
    if spec["resources"]:
        return ()
    containers = [*spec["containers"].items(), *spec["initContainers"].items()]
    found = [_amount(one, name, factor) for one in containers for name, factor in (("cpu", MILLIS), ("memory", 1))]
    for amount in found:
        if not isinstance(amount.limited, Unknown) and not _equal(amount):
            return ()
    unknown = next(iter(_unknowns(found)), None)
    if unknown is not None:
        return (unknown,)
    return tuple(
        one.limited
        for one in found
        if one.resource == "cpu" and isinstance(one.limited, Known) and one.limited.value % MILLIS == 0
    )


def _amount(container: Cursor, resource: str, factor: float) -> Amount:
    requests, limits = container.at("resources", "requests"), container.at("resources", "limits")
    requested, limited = quantity(requests[resource]), quantity(limits[resource])
    return Amount(resource, whole(requested, factor, fractions=True), whole(limited, factor, fractions=True))


def _equal(amount: Amount) -> bool:
    """Whether request and limit may be equal; a limit alone counts as request, too."""
    limited, requested = amount.limited, amount.requested
    if not isinstance(limited, Known) or limited.value == 0:
        return False
    return not isinstance(requested, Known) or requested.value == limited.value


def _unknowns(amounts: list[Amount]) -> Iterator[Unknown]:
    for amount in amounts:
        for fact in (amount.limited, amount.requested):
            if isinstance(fact, Unknown):
                yield fact
