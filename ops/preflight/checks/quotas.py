"""Service quotas: vCPUs of the pool and of the system nodes, Elastic IPs, VPCs."""

from collections.abc import Iterator
from typing import Any

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account, RefusedError
from srvmod.ops.preflight.answers import Answer, ok, will_fail

STANDARD_QUOTA = "L-1216C47A"
STANDARD_FAMILIES = "acdhimrtz"
ADDRESSES_QUOTA = "L-0263D0A3"
VPCS_QUOTA = "L-F678F1CE"
NOT_SET = {"NoSuchResourceException", "NoSuchResource"}


def quota(aws: Account, service: str, code: str) -> int:
    """The quota in effect: the account's own value, or AWS's default where none was ever set."""
    try:
        found = aws.ask("service-quotas", "get_service_quota", ServiceCode=service, QuotaCode=code)
    except RefusedError as error:
        if error.code not in NOT_SET:
            raise
        found = aws.ask("service-quotas", "get_aws_default_service_quota", ServiceCode=service, QuotaCode=code)
    return int(found["Quota"]["Value"])


def _raise(service: str, code: str, value: int) -> str:
    return (
        f"aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} "
        f"--desired-value {value}; approval may take days"
    )


def pool(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """vCPUs of P instances: 192 for each node that the scaler may ask for, beside what runs already."""
    spec = needs.pool
    limit, used = quota(aws, "ec2", spec.quota_code), _others(aws, needs, "p")
    wanted, free = spec.vcpus * spec.max_nodes, limit - used
    subject = f"quota {spec.quota_code}"
    needed = f"{wanted} vCPU: {spec.max_nodes} nodes of {spec.vcpus} ({spec.min_nodes} at the declared traffic)"
    found = f"{limit} vCPU for P instances, {used} used by others"
    if free >= wanted:
        yield ok(subject, found, needed)
        return
    nodes = max(0, free // spec.vcpus)
    short = "not even the declared traffic" if nodes < spec.min_nodes else "the declared traffic, but no peak"
    yield will_fail(subject, f"{found}: {nodes} nodes, {short}", needed, _raise("ec2", spec.quota_code, used + wanted))


def system(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """vCPUs of the system nodes."""
    kind, count = needs.cluster.system_instance_type, needs.cluster.system_nodes
    if kind[0] not in STANDARD_FAMILIES:
        return
    wanted = _vcpus(aws, {kind})[kind] * count
    limit, used = quota(aws, "ec2", STANDARD_QUOTA), _others(aws, needs, STANDARD_FAMILIES)
    found, needed = f"{limit} vCPU, {used} used by others", f"{wanted} vCPU: {count} {kind}"
    if limit - used >= wanted:
        yield ok(f"quota {STANDARD_QUOTA}", found, needed)
    else:
        yield will_fail(f"quota {STANDARD_QUOTA}", found, needed, _raise("ec2", STANDARD_QUOTA, used + wanted))


def addresses(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """Elastic IPs: one for each NAT gateway."""
    wanted = needs.network.nat_gateways
    if not wanted:
        return
    there = aws.ask("ec2", "describe_addresses")["Addresses"]
    others = [address for address in there if not _name(address).startswith(needs.network.nat_name_prefix)]
    limit = quota(aws, "ec2", ADDRESSES_QUOTA)
    found, needed = f"{limit}, {len(others)} used by others", f"{wanted} Elastic IPs for NAT gateways"
    if limit - len(others) >= wanted:
        yield ok(f"quota {ADDRESSES_QUOTA}", found, needed)
    else:
        yield will_fail(
            f"quota {ADDRESSES_QUOTA}",
            found,
            needed,
            f"{_raise('ec2', ADDRESSES_QUOTA, len(others) + wanted)}; or srvmod:network.natGateways single or none",
        )


def vpcs(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """VPCs: one, unless it is there already."""
    if needs.network.existing_vpc_id:
        return
    there = aws.all("ec2", "describe_vpcs", "Vpcs")
    limit, names = quota(aws, "vpc", VPCS_QUOTA), [_name(vpc) for vpc in there]
    others = [name for name in names if name != needs.network.vpc_name]
    found = f"{limit}, {len(others)} used by others"
    if limit > len(others):
        yield ok(f"quota {VPCS_QUOTA}", found, "1 VPC")
    else:
        yield will_fail(
            f"quota {VPCS_QUOTA}",
            found,
            "1 VPC",
            f"{_raise('vpc', VPCS_QUOTA, len(others) + 1)}; or srvmod:network.existing",
        )


def _others(aws: Account, needs: AccountNeeds, families: str) -> int:
    """vCPUs of running on-demand instances of these families that don't belong to the environment's cluster."""
    states = {"Name": "instance-state-name", "Values": ["pending", "running"]}
    reservations = aws.all("ec2", "describe_instances", "Reservations", Filters=[states])
    types = [
        str(instance["InstanceType"])
        for reservation in reservations
        for instance in reservation["Instances"]
        if instance["InstanceType"][0] in families
        and instance.get("InstanceLifecycle") != "spot"
        and _owner(instance) != needs.cluster.name
    ]
    vcpus = _vcpus(aws, set(types))
    return sum(vcpus[kind] for kind in types)


def _vcpus(aws: Account, types: set[str]) -> dict[str, int]:
    """vCPUs of instance types, as quotas count them."""
    if not types:
        return {}
    found = aws.all("ec2", "describe_instance_types", "InstanceTypes", InstanceTypes=sorted(types))
    return {str(kind["InstanceType"]): int(kind["VCpuInfo"]["DefaultVCpus"]) for kind in found}


def _tags(thing: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in thing.get("Tags", [])}


def _name(thing: Any) -> str:
    return _tags(thing).get("Name", "")


def _owner(thing: Any) -> str:
    return _tags(thing).get("eks:eks-cluster-name") or _tags(thing).get("eks:cluster-name", "")
