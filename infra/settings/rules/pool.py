"""Rules about the pool: where p5 can be had, and by which reservations."""

from collections.abc import Iterator

from srvmod.contract import OFFERINGS_READ_ON, P5_48XLARGE, P5_ZONES, CapacityType, offers_p5
from srvmod.infra.settings.rules.finding import Finding, Rule
from srvmod.infra.settings.settings import Settings


def zones_of_network(s: Settings) -> Iterator[Finding]:
    """Nodes need a subnet in their zone."""
    for index, zone in enumerate(s.pool.zones):
        if zone not in s.network.zones:
            yield Finding(
                ("pool", "zones", index),
                "isn't one of network.zones, so it has no subnet",
                f"zones of {', '.join(s.network.zones)}",
            )


def zones_offer_p5(s: Settings) -> Iterator[Finding]:
    """A zone that doesn't offer p5 leaves engines pending for ever."""
    for index, zone in enumerate(s.pool.zones):
        if not offers_p5(zone) and zone not in s.pool.offered_zones:
            known = P5_ZONES.get(s.aws.region, ())
            where = f"{', '.join(known)}" if known else f"none in {s.aws.region}"
            yield Finding(
                ("pool", "zones", index),
                f"doesn't offer {P5_48XLARGE.name} as far as is known (table of {OFFERINGS_READ_ON})",
                f"{where}; or list it in pool.offeredZones after asking the account: aws ec2 "
                "describe-instance-type-offerings --location-type availability-zone",
            )


def reservations_in_zones(s: Settings) -> Iterator[Finding]:
    """A reservation fixes the zone of its nodes."""
    for index, reservation in enumerate(s.pool.reservations):
        if reservation.zone not in s.pool.zones:
            yield Finding(
                ("pool", "reservations", index, "zone"),
                "isn't one of pool.zones, so the reservation would stay unused",
                f"zones of {', '.join(s.pool.zones)}",
            )


def reservations_usable(s: Settings) -> Iterator[Finding]:
    """Reservations and the ways to buy nodes must agree."""
    reserved = CapacityType.RESERVED in s.pool.capacity_types
    if s.pool.reservations and not reserved:
        yield Finding(("pool", "capacityTypes"), "leaves pool.reservations unused", "a list with reserved in it")
    if not s.pool.reservations and s.pool.capacity_types == (CapacityType.RESERVED,):
        yield Finding(
            ("pool", "reservations"),
            "is empty although pool.capacityTypes allows only reserved: no node could be launched",
            "at least one reservation, or on-demand among capacityTypes",
        )


def nodes_suffice(s: Settings) -> Iterator[Finding]:
    """The pool's limit must hold the engines that may run."""
    nodes, fewest = s.pool.max_nodes, s.sizing.min_nodes
    if nodes is not None and nodes < fewest:
        yield Finding(
            ("pool", "maxNodes"),
            f"is less than the {fewest} nodes of {s.sizing.min_engines} engines",
            f"at least {fewest}",
        )


RULES: tuple[Rule, ...] = (
    zones_of_network,
    zones_offer_p5,
    reservations_in_zones,
    reservations_usable,
    nodes_suffice,
)
