"""In which regions a service is, without reading the service's whole API model.

moto asks botocore for each service that it starts, and botocore reads the model (EC2's has 8 MB) for one word of it:
the prefix of the service's endpoints. Known here for what the stack needs from its first second on.
"""

from __future__ import annotations

from typing import Any

from botocore.session import Session

PREFIXES = {
    name: name for name in ("ec2", "eks", "events", "iam", "kms", "logs", "s3", "secretsmanager", "sqs", "ssm", "sts")
}
"""Service -> prefix of its endpoints (`metadata.endpointPrefix` of its API model)."""

_ask_model = Session.get_available_regions


def get_available_regions(
    self: Session, service_name: str, partition_name: str = "aws", allow_non_regional: bool = False
) -> list[str]:
    """As botocore's method of this name; services that aren't in `PREFIXES` are looked up as before."""
    if service_name not in PREFIXES:
        return _ask_model(self, service_name, partition_name, allow_non_regional)
    resolver: Any = self._get_internal_component("endpoint_resolver")
    return resolver.get_available_endpoints(PREFIXES[service_name], partition_name, allow_non_regional)


def install() -> None:
    """Answer botocore's question here, in the whole process. Idempotent."""
    Session.get_available_regions = get_available_regions
