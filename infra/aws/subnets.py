"""How a VPC's addresses are split over zones."""

from collections.abc import Sequence
from ipaddress import IPv4Network

from srvmod.infra.aws.network import Zone

QUARTERS = 2
SIXTEENTHS = 2


def split(cidr: IPv4Network, zones: Sequence[str]) -> list[Zone]:
    """A quarter of the addresses per zone for nodes and pods, a sixteenth per zone for the public side.

    Of a /16 that is a /18 and a /20. Raises ValueError for more than three zones, which a quarter each doesn't hold.
    """
    *private, public = cidr.subnets(prefixlen_diff=QUARTERS)
    if len(zones) > len(private):
        raise ValueError(f"network.zones = {list(zones)}; allowed: at most {len(private)}; fix: the stack's file")
    return [
        Zone(name=zone, private_cidr=str(inside), public_cidr=str(outside))
        for zone, inside, outside in zip(zones, private, public.subnets(prefixlen_diff=SIXTEENTHS), strict=False)
    ]
