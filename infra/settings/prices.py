"""Section about prices: what `srvmod cost` multiplies. The program itself makes nothing of them."""

from datetime import date
from typing import Annotated

from pydantic import Field

from srvmod.infra.settings.base import Allowed, Section


class Price(Section):
    """One price in USD, before tax, with where and when it was read: prices change and differ by contract."""

    usd: Annotated[float, Field(gt=0, le=10_000), Allowed("a positive number of USD, at most 10,000")]
    """Price of one unit."""
    read_on: Annotated[date, Field(strict=False), Allowed("a date such as 2026-11-09")]
    """Day on which the source was read."""
    source: Annotated[
        str, Field(min_length=3, max_length=500), Allowed("where the price is from: a page or a contract")
    ]
    """Page, contract or bill."""


class PricesSettings(Section):
    """What this environment's account pays. A price that is left out is named as missing, never guessed."""

    gpu_node: Price | None = None
    """One p5.48xlarge per hour, as it is bought (on demand, reserved or block)."""
    system_node: Price | None = None
    """One system node (`cluster.systemNodes.instanceType`) per hour."""
    cluster: Price | None = None
    """One EKS control plane in standard support per hour."""
    nat_gateway: Price | None = None
    """One NAT gateway per hour, without traffic."""
    interface_endpoint: Price | None = None
    """One interface endpoint in one zone per hour, without traffic."""
    load_balancer: Price | None = None
    """One Network Load Balancer per hour, without traffic."""
    volume_gib_month: Price | None = None
    """One GiB of a gp3 volume per month."""
    bucket_gb_month: Price | None = None
    """One GB in S3 Standard per month."""


__all__ = ["Price", "PricesSettings"]
