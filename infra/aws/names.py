"""Names and tags of one deployment: the only place that makes them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

DISCOVERY_TAG = "karpenter.sh/discovery"
VPC = "vpc"
"""Part name of the VPC."""
ENVIRONMENT_TAG = "srvmod.dev/environment"


def discovery_tags(cluster: str) -> dict[str, str]:
    """Tags by which Karpenter finds the subnets and the security group of `cluster`.

    The resources that carry them and the EC2NodeClass that selects by them both call this function.
    """
    return {DISCOVERY_TAG: cluster}


@dataclass(frozen=True)
class Names:
    """Names and tags of everything that belongs to one cluster."""

    cluster: str
    environment: str
    extra_tags: Mapping[str, str] = field(default_factory=dict[str, str])

    def of(self, part: str) -> str:
        """Name of a part of the deployment, e.g. `srvmod-prod-karpenter`."""
        return f"{self.cluster}-{part}"

    @property
    def flow_log_group(self) -> str:
        """Log group of the VPC's flows."""
        return f"/aws/vpc/{self.of('flows')}"

    @property
    def control_plane_log_group(self) -> str:
        """Log group of the control plane; EKS writes to this name and no other."""
        return f"/aws/eks/{self.cluster}/cluster"

    def tags(self, part: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """Tags of a part: its name, the environment, the stack's own tags, then `more`."""
        return {
            "Name": self.of(part),
            ENVIRONMENT_TAG: self.environment,
            **self.extra_tags,
            **(more or {}),
        }

    def discovery_tags(self) -> dict[str, str]:
        """See `discovery_tags`."""
        return discovery_tags(self.cluster)


@dataclass(frozen=True)
class Account:
    """Where resources live: used to build ARNs without asking AWS, so they are known at preview."""

    id: str
    region: str
    partition: str = "aws"

    def arn(self, service: str, resource: str, *, regional: bool = True, owned: bool = True) -> str:
        """ARN of a resource; `regional=False` for IAM and S3, `owned=False` leaves the account out."""
        region = self.region if regional else ""
        account = self.id if owned else ""
        return f"arn:{self.partition}:{service}:{region}:{account}:{resource}"

    def managed_policy(self, name: str) -> str:
        """ARN of a policy that AWS manages."""
        return f"arn:{self.partition}:iam::aws:policy/{name}"

    def cluster_access_policy(self, name: str) -> str:
        """ARN of an access policy that EKS manages."""
        return f"arn:{self.partition}:eks::aws:cluster-access-policy/{name}"

    def role(self, name: str) -> str:
        """ARN of a role of this account."""
        return self.arn("iam", f"role/{name}", regional=False)
