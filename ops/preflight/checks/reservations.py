"""Capacity reservations and capacity blocks: state, count, zone, end."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from srvmod.contract.account_needs import AccountNeeds, PoolNeeds, ReservationNeeds
from srvmod.ops.preflight.account import Account, RefusedError
from srvmod.ops.preflight.answers import Answer, cant_tell, ok, will_fail

KINDS = {"onDemand": "default", "block": "capacity-block"}
NOT_YET = {"scheduled", "payment-pending", "assessing", "delayed", "pending"}
ENDS_SOON_DAYS = 7
ANY = "*"
"""Karpenter's word for any value of a tag."""
RESERVED = "reserved"


def reservations(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """Each reservation is there and usable; together they hold the plan where nothing else may be bought."""
    pool, instances = needs.pool, dict[str, int]()
    for wanted in pool.reservations:
        label = wanted.id or ", ".join(f"{key}={value}" for key, value in sorted(wanted.tags.items()))
        there = _matching(aws, wanted)
        if not there:
            yield will_fail(
                f"reservation {label}",
                f"not in this account and {needs.region}",
                "an existing reservation",
                "correct srvmod:pool.reservations, or have it shared with this account",
            )
        for reservation in there:
            answer, count = _judge(reservation, wanted, pool)
            instances[str(reservation["CapacityReservationId"])] = count  # once, also where two entries select it
            yield answer
    usable = sum(instances.values())
    if pool.capacity_types == (RESERVED,):
        found, needed = f"{usable} reserved instances", f"{pool.min_nodes} nodes, all of them reserved"
        if usable < pool.min_nodes:
            yield will_fail("reserved capacity", found, needed, "reserve more, or allow on-demand in capacityTypes")
        else:
            yield ok("reserved capacity", found, needed)


def _matching(aws: Account, wanted: ReservationNeeds) -> list[Any]:
    filters = [
        {"Name": "tag-key", "Values": [key]} if value == ANY else {"Name": f"tag:{key}", "Values": [value]}
        for key, value in sorted(wanted.tags.items())
    ]
    query: dict[str, Any] = {"CapacityReservationIds": [wanted.id]} if wanted.id else {"Filters": filters}
    try:
        found = aws.all("ec2", "describe_capacity_reservations", "CapacityReservations", **query)
    except RefusedError as error:
        if error.code.startswith("InvalidCapacityReservationId"):
            return []
        raise
    # What is over keeps its tags; neither Karpenter nor people mean it.
    return found if wanted.id else [one for one in found if one["State"] in {"active", *NOT_YET}]


def _judge(there: Any, wanted: ReservationNeeds, pool: PoolNeeds) -> tuple[Answer, int]:
    """What is to be said about a reservation, and how many instances it gives."""
    subject, state, total = f"reservation {there['CapacityReservationId']}", there["State"], there["TotalInstanceCount"]
    end, kind = there.get("EndDate"), there.get("ReservationType", "default")
    until = f", until {end:%Y-%m-%d %H:%M} UTC" if end else ""
    found = (
        f"{state}, {kind}, {total} {there['InstanceType']} in {there['AvailabilityZone']}, "
        f"{there.get('AvailableInstanceCount', 0)} free{until}"
    )
    zones = (wanted.zone,) if wanted.zone else pool.zones
    needed = f"active, {KINDS[wanted.kind]}, {pool.instance_type} in {' or '.join(zones)}"
    other_zone = f"set its zone to {there['AvailabilityZone']}"
    if wanted.zone is None:
        other_zone = f"add {there['AvailabilityZone']} to srvmod:pool.zones, or take the tags off it"
    problems = [
        text
        for wrong, text in (
            (there["InstanceType"] != pool.instance_type, "it is for another instance type"),
            (there["AvailabilityZone"] not in zones, other_zone),
            (kind != KINDS[wanted.kind], "set its kind (onDemand or block)"),
            (end is not None and end <= datetime.now(UTC), "it is over; take it out or renew it"),
        )
        if wrong
    ]
    if problems:
        return will_fail(subject, found, needed, "srvmod:pool.reservations: " + "; ".join(problems)), 0
    if state in NOT_YET:
        start = there.get("StartDate")
        when = f"it starts {start:%Y-%m-%d %H:%M} UTC; " if start else ""
        return cant_tell(subject, found, needed, f"{when}nodes come on demand, or not at all, until then"), 0
    if state != "active":
        return will_fail(subject, found, needed, "take it out of srvmod:pool.reservations or make a new one"), 0
    if end is not None and (end - datetime.now(UTC)).days < ENDS_SOON_DAYS:
        return (
            cant_tell(subject, found, needed, "it ends soon: its nodes are drained then; renew it or plan for it"),
            total,
        )
    return ok(subject, found, needed), total
