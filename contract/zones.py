"""Where p5.48xlarge is offered, per region and zone.

Source: `ec2 describe-instance-type-offerings --location-type availability-zone` as recorded in moto 5.2.5,
read 2026-11-29. AWS changes offerings without notice and zone letters differ between accounts: a stack may
name further zones in `pool.offeredZones`, and preflight asks the account itself.
"""

OFFERINGS_READ_ON = "2026-11-29"

P5_ZONES: dict[str, tuple[str, ...]] = {
    region: tuple(f"{region}{letter}" for letter in letters)
    for region, letters in {
        "ap-northeast-1": "ac",
        "ap-northeast-2": "a",
        "ap-south-1": "abc",
        "ap-southeast-2": "abc",
        "ap-southeast-3": "a",
        "ca-central-1": "d",
        "eu-north-1": "abc",
        "eu-west-2": "abc",
        "sa-east-1": "c",
        "us-east-1": "abcdef",
        "us-east-2": "abc",
        "us-west-1": "ab",
        "us-west-2": "abcd",
    }.items()
}


def offers_p5(zone: str) -> bool:
    """Whether the table knows that the zone offers p5.48xlarge."""
    return any(zone in zones for zones in P5_ZONES.values())
