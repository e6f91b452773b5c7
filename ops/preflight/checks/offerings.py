"""Where the pool's instance type can be had, and whether a subnet is there."""

from collections.abc import Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account
from srvmod.ops.preflight.answers import Answer, ok, will_fail


def offered(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """Each of the pool's zones offers the instance type."""
    kind, zones = needs.pool.instance_type, needs.pool.zones
    found = aws.all(
        "ec2",
        "describe_instance_type_offerings",
        "InstanceTypeOfferings",
        LocationType="availability-zone",
        Filters=[{"Name": "instance-type", "Values": [kind]}],
    )
    there = sorted(str(offering["Location"]) for offering in found)
    without = [zone for zone in zones if zone not in there]
    text = f"offered in {', '.join(there) or 'no zone of ' + needs.region}"
    if not without:
        yield ok(kind, text, f"offered in {', '.join(zones)}")
        return
    left = [zone for zone in zones if zone in there]
    fix = f"take {', '.join(without)} out of srvmod:pool.zones"
    if not left:
        fix = f"choose srvmod:pool.zones among {', '.join(there)}" if there else "choose another region"
    yield will_fail(kind, text, f"offered in {', '.join(zones)}", fix)


def subnets(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """An existing VPC has the subnets that were named, each in its zone, none with public addresses."""
    network = needs.network
    if not network.existing_vpc_id:
        return
    wanted = dict(zip(network.existing_subnet_ids, network.zones, strict=True))
    there = aws.all(
        "ec2", "describe_subnets", "Subnets", Filters=[{"Name": "vpc-id", "Values": [network.existing_vpc_id]}]
    )
    known = {subnet["SubnetId"]: subnet for subnet in there}
    problems: list[str] = []
    for subnet, zone in wanted.items():
        if subnet not in known:
            problems.append(f"{subnet} isn't in {network.existing_vpc_id}")
        elif known[subnet]["AvailabilityZone"] != zone:
            problems.append(f"{subnet} is in {known[subnet]['AvailabilityZone']}, not {zone}")
        elif known[subnet].get("MapPublicIpOnLaunch"):
            problems.append(f"{subnet} gives public addresses")
    needed = f"private subnets of {network.existing_vpc_id} in {', '.join(network.zones)}"
    if problems:
        yield will_fail("subnets", "; ".join(problems), needed, "correct srvmod:network.existing or the subnets")
    else:
        yield ok("subnets", f"{len(wanted)} subnets as named", needed)
