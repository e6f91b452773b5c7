"""The instance types that this simulation offers, out of the 1,400 of moto.

Karpenter reads all types of a region twice at start; moto takes seven seconds to write 1,400 of them, so only the
families that the product's pools and its system node groups may use are kept.
"""

from __future__ import annotations

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES, InstanceTypeBackend

FAMILIES = frozenset({"p5", "p5e", "p5en", "p4d", "g5", "g6", "m5", "m6i", "m7i", "c6i", "r6i", "t3"})


def _kept(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] in FAMILIES


def trim() -> None:
    """Leave only `FAMILIES` in moto. Idempotent."""
    for name in [n for n in INSTANCE_TYPES if not _kept(n)]:
        del INSTANCE_TYPES[name]
    for regions in INSTANCE_TYPE_OFFERINGS.values():
        for region, offerings in regions.items():
            regions[region] = [o for o in offerings if _kept(o["InstanceType"])]
    InstanceTypeBackend.instance_types[:] = [t for t in InstanceTypeBackend.instance_types if _kept(t["InstanceType"])]
