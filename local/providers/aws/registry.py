"""The table: every type that this provider has."""

from __future__ import annotations

from srvmod.local.providers.aws import (
    eks,
    events,
    flow_log,
    iam,
    kms,
    network,
    registry_ecr,
    routing,
    s3,
    security,
    sqs,
)
from srvmod.local.providers.aws.base import Resource

_MODULES = (network, routing, flow_log, security, iam, kms, eks, sqs, events, s3, registry_ecr)

TYPES: dict[str, Resource] = {kind.token: kind for module in _MODULES for kind in module.TYPES}
