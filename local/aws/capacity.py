"""EC2 capacity: reservations (on demand and capacity blocks) and placement groups. moto has neither.

Reservations are made by CreateCapacityReservation, or set whole by the admin endpoint (a capacity block, another
owner's reservation, an expired one).
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Mapping
from typing import Any

from srvmod.local.aws import determinism
from srvmod.local.aws.context import Context, Handler
from srvmod.local.aws.wire import AwsError, page

Document = dict[str, Any]
_FIELDS = {
    "instance-type": "InstanceType",
    "owner-id": "OwnerId",
    "instance-platform": "InstancePlatform",
    "availability-zone": "AvailabilityZone",
    "availability-zone-id": "AvailabilityZoneId",
    "tenancy": "Tenancy",
    "state": "State",
    "end-date-type": "EndDateType",
    "instance-match-criteria": "InstanceMatchCriteria",
    "reservation-type": "ReservationType",
}


def reservations(context: Context) -> dict[str, Document]:
    """The reservations of the call's region by id."""
    return context.world.reservations.setdefault(context.region, {})


def make(context: Context, given: Mapping[str, Any]) -> Document:
    """A reservation document with the API's defaults for what ``given`` leaves out, put into the state."""
    identifier = str(given.get("CapacityReservationId") or f"cr-{determinism.new_id(17)}")
    total = int(given.get("TotalInstanceCount") or given.get("InstanceCount") or 0)
    if total <= 0 or not given.get("InstanceType") or not given.get("AvailabilityZone"):
        raise AwsError(
            "MissingParameter", f"a reservation needs InstanceType, AvailabilityZone and InstanceCount > 0, not {given}"
        )
    zone = str(given["AvailabilityZone"])
    if not zone.startswith(context.region):
        raise AwsError("InvalidParameterValue", f"AvailabilityZone {zone} isn't in {context.region}")
    document: Document = {
        "OwnerId": context.account,
        "InstancePlatform": "Linux/UNIX",
        "Tenancy": "default",
        "EbsOptimized": True,
        "EphemeralStorage": False,
        "State": "active",
        "EndDateType": "unlimited",
        "InstanceMatchCriteria": "open",
        "ReservationType": "default",
        "AvailableInstanceCount": total,
        "Tags": [],
        "CreateDate": determinism.now(),
        "StartDate": determinism.now(),
        **{k: v for k, v in given.items() if k not in {"InstanceCount", "TagSpecifications", "ClientToken", "DryRun"}},
        "TotalInstanceCount": total,
        "CapacityReservationId": identifier,
        "CapacityReservationArn": f"arn:aws:ec2:{context.region}:{context.account}:capacity-reservation/{identifier}",
    }
    for specification in given.get("TagSpecifications", []):
        document["Tags"] = [*document["Tags"], *specification.get("Tags", [])]
    reservations(context)[identifier] = document
    return document


def _matches(document: Document, filters: Iterable[Mapping[str, Any]]) -> bool:
    tags = {t["Key"]: t["Value"] for t in document["Tags"]}
    for given in filters:
        name, values = given["Name"], given.get("Values", [])
        if name.startswith("tag:"):
            have = [tags[name[4:]]] if name[4:] in tags else []
        elif name == "tag-key":
            have = list(tags)
        elif name in _FIELDS:
            have = [str(document.get(_FIELDS[name], ""))]
        else:
            raise AwsError("InvalidParameterValue", f"The filter '{name}' is invalid")
        if not any(fnmatch.fnmatchcase(h, v) for h in have for v in values):
            return False
    return True


def describe(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    known, ids = reservations(context), params.get("CapacityReservationIds", [])
    if missing := [i for i in ids if i not in known]:
        raise AwsError(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID(s) {', '.join(missing)} do not exist"
        )
    found = [d for i, d in sorted(known.items()) if not ids or i in ids]
    shown, token = page([d for d in found if _matches(d, params.get("Filters", []))], params)
    return {"CapacityReservations": shown, "NextToken": token}


def create(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"CapacityReservation": make(context, params)}


def cancel(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    identifier = params["CapacityReservationId"]
    document = reservations(context).get(identifier)
    if document is None:
        raise AwsError(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{identifier}' does not exist"
        )
    document |= {"State": "cancelled", "AvailableInstanceCount": 0}
    return {"Return": True}


def describe_placement_groups(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """There are none: moto can't make one, and nothing here uses them."""
    if names := params.get("GroupNames") or params.get("GroupIds"):
        raise AwsError("InvalidPlacementGroup.Unknown", f"The Placement Group(s) {', '.join(names)} are unknown")
    return {"PlacementGroups": []}


OPERATIONS: dict[str, Handler] = {
    "DescribeCapacityReservations": describe,
    "CreateCapacityReservation": create,
    "CancelCapacityReservation": cancel,
    "DescribePlacementGroups": describe_placement_groups,
}
