"""Rules about addresses and zones."""

from collections.abc import Iterator

from srvmod.infra.settings.rules.finding import Finding, Rule
from srvmod.infra.settings.settings import Settings


def vpc_beside_services(s: Settings) -> Iterator[Finding]:
    """Pods and Services are told apart by their addresses alone."""
    if s.network.cidr.overlaps(s.cluster.service_cidr):
        yield Finding(
            ("network", "cidr"),
            f"overlaps cluster.serviceCidr ({s.cluster.service_cidr}): addresses of pods and of Services would mix",
            "networks that don't overlap; change either",
        )


def zones_in_region(s: Settings) -> Iterator[Finding]:
    """Zones belong to the region that everything is made in; zones of one other region blame the region's name."""
    regions = {zone[:-1] for zone in s.network.zones}
    if len(regions) == 1 and s.aws.region not in regions:
        yield Finding(
            ("aws", "region"),
            f"has none of network.zones: {', '.join(s.network.zones)}",
            f"{regions.pop()}, or zones of {s.aws.region} in network.zones",
        )
        return
    for index, zone in enumerate(s.network.zones):
        if zone[:-1] != s.aws.region:
            yield Finding(("network", "zones", index), "isn't in aws.region", f"zones of {s.aws.region}")


def subnet_per_zone(s: Settings) -> Iterator[Finding]:
    """An existing network has one private subnet for each zone."""
    existing = s.network.existing
    if existing is not None and len(existing.private_subnet_ids) != len(s.network.zones):
        yield Finding(
            ("network", "existing", "privateSubnetIds"),
            f"has {len(existing.private_subnet_ids)} subnets for {len(s.network.zones)} zones",
            f"{len(s.network.zones)} subnets, in the order of network.zones",
        )


def mirror_without_nat(s: Settings) -> Iterator[Finding]:
    """Without NAT nothing can be pulled from the Internet."""
    if s.network.nat_gateways == "none" and s.network.existing is None and s.images.registry is None:
        yield Finding(
            ("images", "registry"),
            "network.natGateways is none, so nodes can pull from no public registry",
            "a mirror inside AWS, such as the account's ECR; or natGateways: perZone",
        )


RULES: tuple[Rule, ...] = (vpc_beside_services, zones_in_region, subnet_per_zone, mirror_without_nat)
