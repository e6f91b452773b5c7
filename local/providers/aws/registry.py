"""The table: every type that this provider has."""

from __future__ import annotations

from srvmod.local.providers.aws import (
    eks,
    eks_attached,
    events,
    flow_log,
    iam,
    kms,
    launch_template,
    network,
    registry_ecr,
    routing,
    s3,
    s3_lifecycle,
    security,
    sqs,
    vpc_endpoint,
)  # fmt: skip
from srvmod.local.providers.aws.base import Resource

_MODULES = (
    network, vpc_endpoint, routing, flow_log, security, iam, kms, launch_template, eks, eks_attached, sqs, events, s3,
    s3_lifecycle, registry_ecr,
)  # fmt: skip

TYPES: dict[str, Resource] = {kind.token: kind for module in _MODULES for kind in module.TYPES}
