"""Rules about the pool: where p5 can be had, and by which reservations."""

from collections.abc import Iterator

from srvmod.contract import OFFERINGS_READ_ON, P5_48XLARGE, P5_ZONES, CapacityType, counted, offers_p5
from srvmod.infra.settings.rules.finding import Finding, Rule
from srvmod.infra.settings.serving import MOST_RESERVATIONS
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


def reservations_selected(s: Settings) -> Iterator[Finding]:
    """A reservation is told by its id and zone, or by tags: Karpenter refuses a term with both, or with none."""
    for index, reservation in enumerate(s.pool.reservations):
        path = ("pool", "reservations", index)
        if reservation.id and reservation.tags:
            yield Finding(
                (*path, "tags"),
                "can't stand beside id: Karpenter refuses a node class that selects one reservation by both",
                "id, or tags; for both selections two entries of pool.reservations",
            )
        elif not reservation.id and not reservation.tags:
            yield Finding(
                path,
                "says of no reservation which one it is",
                "id with zone, such as {id: cr-0123456789abcdef0, zone: us-east-1a}; or tags, such as "
                "{tags: {purpose: llm}}",
            )
        elif reservation.id and reservation.zone is None:
            yield Finding((*path, "zone"), "is needed with id", f"one of {', '.join(s.pool.zones)}")
        elif reservation.tags and reservation.zone is not None:
            yield Finding(
                (*path, "zone"),
                "can't stand beside tags: Karpenter takes what has the tags in each of the pool's zones",
                "tags without zone; narrow pool.zones instead",
            )


def reservations_differ(s: Settings) -> Iterator[Finding]:
    """Each selection is a term of the node class, which takes a number of them."""
    selections = [reservation.selected_by for reservation in s.pool.reservations]
    if len(set(selections)) < len(selections) or len(selections) > MOST_RESERVATIONS:
        yield Finding(
            ("pool", "reservations"),
            "has one twice" if len(set(selections)) < len(selections) else f"has {len(selections)} entries",
            f"at most {MOST_RESERVATIONS} reservations with different ids or tags",
        )


def reservations_in_zones(s: Settings) -> Iterator[Finding]:
    """A reservation fixes the zone of its nodes."""
    for index, reservation in enumerate(s.pool.reservations):
        if reservation.id and reservation.zone is not None and reservation.zone not in s.pool.zones:
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
            f"is less than the {counted(fewest, 'node')} of {counted(s.sizing.min_engines, 'engine')}",
            f"at least {fewest}",
        )


RULES: tuple[Rule, ...] = (
    zones_of_network,
    zones_offer_p5,
    reservations_selected,
    reservations_differ,
    reservations_in_zones,
    reservations_usable,
    nodes_suffice,
)
