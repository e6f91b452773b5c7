"""What an environment needs of its AWS account: written by the program beside its manifests, read before a deployment.

The program renders it (`manifests/<env>/account.json`); `srvmod preflight` asks the account for each of its lines.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

MODEL_FILES: Final = ("config.json", "*.safetensors")
"""What an engine can't start without, in the folder of each model that it loads."""


class Needs(BaseModel):
    """A part of the needs: immutable, camelCase in JSON, no other keys."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, use_attribute_docstrings=True
    )


class ClusterNeeds(Needs):
    """The EKS cluster."""

    name: str
    kubernetes_version: str
    public_endpoint: bool
    addons: dict[str, str]
    """Pinned version of each add-on."""
    system_instance_type: str
    system_nodes: int
    """Nodes of the system group."""


class NetworkNeeds(Needs):
    """The VPC: made by the program, or an existing one by ids."""

    zones: tuple[str, ...]
    existing_vpc_id: str | None = None
    existing_subnet_ids: tuple[str, ...] = ()
    vpc_name: str
    """`Name` tag of the VPC that the program makes."""
    nat_gateways: int
    """NAT gateways with an Elastic IP each."""
    nat_name_prefix: str
    """How the `Name` tags of the program's own Elastic IPs start."""
    interface_endpoints: int


class ReservationNeeds(Needs):
    """A capacity reservation or capacity block that the pool selects: by id, or by tags."""

    id: str | None = None
    tags: dict[str, str] = {}
    """All must match; `*` stands for any value."""
    zone: str | None = None
    """Zone of the one that `id` names; those found by tags may be in any of the pool's."""
    kind: Literal["onDemand", "block"]


class PoolNeeds(Needs):
    """The pool of GPU nodes."""

    instance_type: str
    vcpus: int
    """vCPUs of one node."""
    quota_code: str
    """Service quota that counts them."""
    zones: tuple[str, ...]
    min_nodes: int
    """Nodes that the declared traffic fills."""
    max_nodes: int
    """Nodes that the scaler may ask for."""
    capacity_types: tuple[str, ...]
    ami_alias: str
    reservations: tuple[ReservationNeeds, ...]


class WeightsNeeds(Needs):
    """Where the model's weights lie."""

    bucket: str
    prefix: str
    revision: str
    required: tuple[str, ...]
    """Patterns of files that the revision must have; wildcards stand in names, not in folders."""

    def lacking(self, paths: Iterable[str]) -> list[str]:
        """The required patterns that none of the revision's files matches, by the weight cache's own rule."""
        files = [PurePosixPath(path) for path in paths]
        return [
            str(pattern)
            for pattern in map(PurePosixPath, self.required)
            if not any(file.parent == pattern.parent and fnmatchcase(file.name, pattern.name) for file in files)
        ]


class AccountNeeds(Needs):
    """Everything that an environment needs of its account."""

    environment: str
    settings_digest: str
    """`digest_of` the stack's settings that this was made from."""
    account_id: str
    region: str
    simulated: bool
    cluster: ClusterNeeds
    network: NetworkNeeds
    pool: PoolNeeds
    weights: WeightsNeeds
    admins: tuple[str, ...] = ()
    """ARNs of the principals that get access entries: EKS refuses those that don't exist."""
    deployers: tuple[str, ...] = ()
    """Those of them that may do everything in the cluster, as whoever runs `pulumi up` must."""
    plan_roles: tuple[str, ...] = ()
    """ARNs of the roles that may read what the program declares in the cluster."""
    key_aliases: tuple[str, ...]
    """KMS keys that the program makes, by alias."""
    service_linked_roles: tuple[str, ...]
    """AWS services that need their role in the account, as service principals."""
    api_keys_secret: str
    api_clients: tuple[str, ...]
    certificate_arn: str | None = None

    def to_json(self) -> str:
        """The file's text: sorted, one line per value."""
        document = self.model_dump(mode="json", by_alias=True)
        return json.dumps(document, indent=2, sort_keys=True) + "\n"


def digest_of(config: Mapping[str, object], project: str) -> str:
    """SHA-256 (hex) of the settings of `project` in a stack file's `config`, without secrets.

    Comments, order and layout of the file don't change it.
    """
    own = {key: value for key, value in config.items() if key.startswith(f"{project}:") and not _secret(value)}
    text = json.dumps(own, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _secret(value: object) -> bool:
    return isinstance(value, Mapping) and "secure" in value
