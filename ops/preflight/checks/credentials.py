"""Whose credentials these are, and whether the region is open to the account."""

from collections.abc import Iterator

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.account import Account
from srvmod.ops.preflight.answers import Answer, ok, will_fail

OPEN = {"opt-in-not-required", "opted-in"}


def account(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """The caller is in the stack's account."""
    caller = aws.ask("sts", "get_caller_identity")
    found = f"account {caller['Account']} as {caller['Arn']}"
    if caller["Account"] == needs.account_id:
        yield ok("account", found, f"account {needs.account_id}")
        return
    yield will_fail(
        "account",
        found,
        f"account {needs.account_id}",
        f"use credentials of that account, or correct srvmod:aws.accountId in Pulumi.{needs.environment}.yaml",
    )


def region(needs: AccountNeeds, aws: Account) -> Iterator[Answer]:
    """The region is open to the account, and its zones work."""
    regions = aws.ask("ec2", "describe_regions", RegionNames=[needs.region], AllRegions=True)["Regions"]
    status = str(regions[0].get("OptInStatus")) if regions else "no such region"
    if status not in OPEN:
        yield will_fail(
            "region",
            f"{needs.region}: {status}",
            "a region that is open to the account",
            f"aws account enable-region --region-name {needs.region}",
        )
        return
    yield ok("region", f"{needs.region}: {status}", "a region that is open to the account")
    zones = aws.ask("ec2", "describe_availability_zones", AllAvailabilityZones=True)["AvailabilityZones"]
    states = {zone["ZoneName"]: str(zone["State"]) for zone in zones}
    wrong = [zone for zone in needs.network.zones if states.get(zone) != "available"]
    text = ", ".join(f"{zone}: {states.get(zone, 'not there')}" for zone in needs.network.zones)
    if wrong:
        yield will_fail(
            "zones", text, "available zones", f"choose srvmod:network.zones among {', '.join(_available(states))}"
        )
    else:
        yield ok("zones", text, "available zones")


def _available(states: dict[str, str]) -> list[str]:
    return sorted(zone for zone, state in states.items() if state == "available")
