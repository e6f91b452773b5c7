"""The simulation's own endpoint, ``/_srvmod/…``: health, what was called, and the facts that a test may set.

Changes are JSON bodies and go into the journal like AWS calls do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

from srvmod.local.aws import capacity, images
from srvmod.local.aws.context import Context
from srvmod.local.aws.wire import AwsError
from srvmod.local.aws.world import Fault, Price

PREFIX = "/_srvmod/"


def set_quotas(context: Context, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"ec2/L-417A185B": 0}``: values of quotas; unknown ones are added, null removes."""
    table = context.world.quotas
    for name, value in body.items():
        service, _, code = name.partition("/")
        if not code:
            raise AwsError("BadRequest", f"quota {name!r}: write SERVICE/CODE, e.g. ec2/L-417A185B")
        if value is None:
            table.pop((service, code), None)
        else:
            label, _, unit = table.get((service, code), (code, 0.0, "None"))
            table[service, code] = (label, float(value), unit)
    return {f"{s}/{c}": v[1] for (s, c), v in table.items()}


def set_images(context: Context, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"releases": ["20260714"]}``: the AMI releases that exist, for every version, architecture and variant."""
    context.world.images[:] = [i for r in body["releases"] for i in images.defaults(context.world, str(r))]
    images.publish(context)
    return images.parameters(context.world.images)


def set_reservations(context: Context, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"reservations": [{...}]}``: exactly these reservations, by the names of DescribeCapacityReservations."""
    capacity.reservations(context).clear()
    made = [capacity.make(context, given) for given in body["reservations"]]
    return {"reservations": [d["CapacityReservationId"] for d in made]}


def set_offerings(context: Context, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"instanceType": "p5.48xlarge", "zones": [...]}``: the zones of this region that offer a type."""
    kind, zones = body["instanceType"], list(body["zones"])
    table = INSTANCE_TYPE_OFFERINGS["availability-zone"]
    kept = [o for o in table.get(context.region, []) if o["InstanceType"] != kind]
    table[context.region] = [*kept, *({"InstanceType": kind, "Location": z} for z in zones)]
    return {"instanceType": kind, "zones": zones}


def set_prices(context: Context, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"p5.48xlarge": {"usd": 55.04, "source": "..."}}``; null removes."""
    for name, given in body.items():
        if given is None:
            context.world.prices.pop(name, None)
        else:
            context.world.prices[name] = Price(float(given["usd"]), str(given["source"]))
    return {name: asdict(price) for name, price in context.world.prices.items()}


def set_versions(context: Context, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"default": "1.36"}``: the version that clusters get when none is asked for."""
    wanted = body["default"]
    if wanted not in {v.version for v in context.world.versions}:
        raise AwsError("BadRequest", f"default: {wanted!r} isn't one of {[v.version for v in context.world.versions]}")
    context.world.versions = tuple(replace(v, default=v.version == wanted) for v in context.world.versions)
    return {"default": wanted}


def set_addons(context: Context, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"vpc-cni": ["v1.22.4-eksbuild.3"]}``: the versions of add-ons that EKS offers."""
    context.world.addons.update({str(name): tuple(map(str, versions)) for name, versions in body.items()})
    return {name: list(versions) for name, versions in context.world.addons.items()}


def set_faults(context: Context, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """``{"faults": [{"service","operation","code","message","status","times"}]}``: errors to answer with."""
    context.world.faults[:] = [Fault(**given) for given in body["faults"]]
    return {"faults": [asdict(f) for f in context.world.faults]}


SETTERS: dict[str, Callable[[Context, Mapping[str, Any]], Mapping[str, Any]]] = {
    "quotas": set_quotas,
    "images": set_images,
    "reservations": set_reservations,
    "offerings": set_offerings,
    "prices": set_prices,
    "versions": set_versions,
    "addons": set_addons,
    "faults": set_faults,
}


def change(context: Context, name: str, content_type: str, body: bytes) -> Mapping[str, Any]:
    """Carry out ``POST /_srvmod/<name>``. AwsError BadRequest says what is wrong with the request."""
    setter = SETTERS.get(name)
    if setter is None:
        raise AwsError("BadRequest", f"{PREFIX}{name}: there are {', '.join(sorted(SETTERS))}", 404)
    if not content_type.startswith("application/json"):
        raise AwsError("BadRequest", f"{PREFIX}{name} takes application/json, not {content_type or 'nothing'!r}")
    try:
        return setter(context, json.loads(body))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        shape = (setter.__doc__ or "").split("\n")[0]
        raise AwsError("BadRequest", f"{PREFIX}{name}: {type(error).__name__} {error}; expected {shape}") from error
