"""EKS: what the collections that hang on a cluster have in common."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from srvmod.local.aws.context import Context, Handler
from srvmod.local.aws.eks_state import Document, cluster, item
from srvmod.local.aws.wire import AwsError, page


def without(params: Mapping[str, Any], *names: str) -> Document:
    return {k: v for k, v in params.items() if k not in {"clientRequestToken", *names}}


def taken(collection: Mapping[str, Any], key: str, message: str) -> None:
    if key in collection:
        raise AwsError("ResourceInUseException", message, 409)


def describe(kind: str, key: str, label: str, out: str) -> Handler:
    return lambda context, params: {out: item(context, params, kind, key, label)}


def list_names(kind: str, out: str) -> Handler:
    def handler(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
        shown, token = page(sorted(getattr(cluster(context, params["clusterName"]), kind)), params)
        return {out: shown, "nextToken": token}

    return handler


def delete(kind: str, key: str, label: str, out: str) -> Handler:
    def handler(context: Context, params: Mapping[str, Any]) -> Mapping[str, Any]:
        document = item(context, params, kind, key, label)
        del getattr(cluster(context, params["clusterName"]), kind)[params[key]]
        return {out: {**document, "status": "DELETING"} if "status" in document else document}

    return handler
