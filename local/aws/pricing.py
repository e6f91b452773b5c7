"""The Price List API for the instance types whose price is known here; others simply have no product."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from srvmod.local.aws.context import Context, Handler
from srvmod.local.aws.wire import AwsError, page
from srvmod.local.aws.world import Price

_PRODUCT = {
    "operatingSystem": "Linux",
    "preInstalledSw": "NA",
    "capacitystatus": "Used",
    "marketoption": "OnDemand",
    "servicecode": "AmazonEC2",
}


def _item(instance_type: str, price: Price, region: str) -> dict[str, Any]:
    metal = ".metal" in instance_type
    family = "Compute Instance (bare metal)" if metal else "Compute Instance"
    tenancy = "Dedicated" if metal else "Shared"
    attributes = {
        **_PRODUCT,
        "productFamily": family,
        "tenancy": tenancy,
        "instanceType": instance_type,
        "regionCode": region,
    }
    sku = f"SIMULATED-{instance_type}"
    dimension = {"unit": "Hrs", "description": price.source, "pricePerUnit": {"USD": f"{price.usd:.10f}"}}
    return {
        "product": {"productFamily": family, "attributes": attributes, "sku": sku},
        "serviceCode": "AmazonEC2",
        "terms": {"OnDemand": {f"{sku}.1": {"sku": sku, "priceDimensions": {f"{sku}.1.1": dimension}}}},
        "version": "simulated",
        "publicationDate": price.source,
    }


def get_products(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
    if params["ServiceCode"] != "AmazonEC2":
        raise AwsError("NotFoundException", f"only prices of AmazonEC2 are simulated, not {params['ServiceCode']!r}")
    wanted = {}
    for given in params.get("Filters", []):
        if given["Type"] != "TERM_MATCH":
            raise AwsError("InvalidParameterException", f"filter type {given['Type']!r} isn't simulated (TERM_MATCH)")
        wanted[given["Field"]] = given["Value"]
    region = wanted.pop("regionCode", context.region)
    items = []
    for instance_type, price in sorted(context.world.prices.items()):
        item = _item(instance_type, price, region)
        have = {k.lower(): v for k, v in item["product"]["attributes"].items()}
        if all(have.get(k.lower()) == v for k, v in wanted.items()):
            items.append(json.dumps(item))
    shown, token = page(items, params)
    return {"FormatVersion": "aws_v1", "PriceList": shown, "NextToken": token}


OPERATIONS: dict[str, Handler] = {"GetProducts": get_products}
