"""Service Quotas, with values that a test may set (admin.py)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srvmod.local.aws.context import Context, Handler
from srvmod.local.aws.wire import AwsError, page
from srvmod.local.aws.world import QUOTAS


def _document(context: Context, service: str, code: str, quota: tuple[str, float, str]) -> dict[str, Any]:
    name, value, unit = quota
    return {
        "ServiceCode": service,
        "ServiceName": service,
        "QuotaArn": f"arn:aws:servicequotas:{context.region}:{context.account}:{service}/{code}",
        "QuotaCode": code,
        "QuotaName": name,
        "Value": value,
        "Unit": unit,
        "Adjustable": True,
        "GlobalQuota": False,
    }


def _table(context: Context, defaults: bool) -> Mapping[tuple[str, str], tuple[str, float, str]]:
    return QUOTAS if defaults else context.world.quotas


def _get(defaults: bool) -> Handler:
    def handler(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
        key = (params["ServiceCode"], params["QuotaCode"])
        quota = _table(context, defaults).get(key)
        if quota is None:
            raise AwsError("NoSuchResourceException", f"no quota {key[1]} of service {key[0]} is simulated", 404)
        return {"Quota": _document(context, *key, quota)}

    return handler


def _list(defaults: bool) -> Handler:
    def handler(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
        found = [
            _document(context, service, code, quota)
            for (service, code), quota in sorted(_table(context, defaults).items())
            if service == params["ServiceCode"]
        ]
        shown, token = page(found, params)
        return {"Quotas": shown, "NextToken": token}

    return handler


OPERATIONS: dict[str, Handler] = {
    "GetServiceQuota": _get(False),
    "GetAWSDefaultServiceQuota": _get(True),
    "ListServiceQuotas": _list(False),
    "ListAWSDefaultServiceQuotas": _list(True),
}
