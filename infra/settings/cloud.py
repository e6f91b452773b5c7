"""Sections about AWS: account, network, cluster."""

from enum import StrEnum
from ipaddress import IPv4Network
from typing import Annotated

from pydantic import Field

from srvmod.infra.settings.base import LIST, Allowed, InstanceTypeName, Section, Zone, _unique
from srvmod.infra.settings.base import count as between


class Partition(StrEnum):
    """The part of AWS that an account belongs to."""

    AWS = "aws"
    GOVERNMENT = "aws-us-gov"
    CHINA = "aws-cn"


LOG_RETENTION_DAYS = frozenset(
    {1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}
)
"""What CloudWatch Logs offers (AWS::Logs::LogGroup, RetentionInDays)."""


class AwsSettings(Section):
    """The account that everything is made in."""

    account_id: Annotated[
        str, Field(pattern=r"^[0-9]{12}$"), Allowed('the account\'s 12 digits in quotes, such as "111122223333"')
    ]
    """Account id; the provider refuses to work in any other account."""
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$"), Allowed("a region's name, such as us-east-1")]
    """Region of everything."""
    simulated: Annotated[bool, Allowed("true or false")] = False
    """Whether this stack runs against simulated AWS on one machine."""
    pod_endpoint: (
        Annotated[
            str,
            Field(pattern=r"^http://[0-9.]{7,15}:[0-9]{2,5}$"),
            Allowed("an http address with a port, such as http://10.88.0.1:5000; simulated AWS only"),
        ]
        | None
    ) = None
    """Address at which pods reach simulated AWS; real AWS has its own."""
    log_retention_days: Annotated[
        int,
        Allowed(
            f"one of {', '.join(map(str, sorted(LOG_RETENTION_DAYS)))} (CloudWatch Logs)",
            also=lambda days: days in LOG_RETENTION_DAYS,
        ),
    ] = 365
    """How long flow logs, control-plane logs and access logs are kept."""
    partition: Annotated[Partition, Allowed("aws, aws-us-gov or aws-cn")] = Partition.AWS
    """Partition of the account; part of every ARN."""


class NatGateways(StrEnum):
    """How nodes reach the Internet: a NAT gateway per zone, one for all, or none (VPC endpoints only)."""

    PER_ZONE = "perZone"
    SINGLE = "single"
    NONE = "none"


VpcId = Annotated[str, Field(pattern=r"^vpc-[0-9a-f]{8,17}$"), Allowed("a VPC id, such as vpc-0123456789abcdef0")]
SubnetId = Annotated[
    str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$"), Allowed("a subnet id, such as subnet-0123456789abcdef0")
]
Cidr4 = Annotated[IPv4Network, Allowed("an IPv4 network without host bits, such as 10.20.0.0/16")]


class ExistingNetwork(Section):
    """A VPC that somebody else made. Its endpoints, routes and NAT are that team's."""

    vpc_id: VpcId
    """The VPC."""
    private_subnet_ids: Annotated[
        tuple[SubnetId, ...], LIST, Field(min_length=1), Allowed("a list of different subnet ids", also=_unique)
    ]
    """One private subnet per zone, in the order of `network.zones`."""


class NetworkSettings(Section):
    """The VPC: made by this program, or an existing one by ids."""

    cidr: Annotated[
        IPv4Network,
        Allowed(
            "a private IPv4 network (10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10) of /16 to /20, "
            "such as 10.20.0.0/16: three zones of nodes whose pods take VPC addresses need at least a /20",
            also=lambda network: _is_private(network) and 16 <= network.prefixlen <= 20,
        ),
    ]
    """Addresses of the VPC (with `existing`: the addresses it has)."""
    zones: Annotated[
        tuple[Zone, ...],
        LIST,
        Field(min_length=3, max_length=3),
        Allowed("exactly three different availability zones", also=_unique),
    ]
    """Zones of the private subnets."""
    nat_gateways: Annotated[NatGateways, Allowed("perZone, single or none")] = NatGateways.PER_ZONE
    """NAT gateways; none means that nodes reach AWS by VPC endpoints only and images come from a mirror."""
    existing: ExistingNetwork | None = None
    """A VPC to use instead of making one."""
    flow_logs: Annotated[bool, Allowed("true or false")] = True
    """Whether the VPC's flows are logged."""


_PRIVATE = tuple(IPv4Network(n) for n in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"))


def _is_private(network: IPv4Network) -> bool:
    return any(network.subnet_of(private) for private in _PRIVATE)


class KubernetesVersion(StrEnum):
    """Kubernetes versions that this product was tried with."""

    V1_36 = "1.36"


class AccessScope(StrEnum):
    """What a principal may do in the whole cluster; the names of EKS access policies."""

    CLUSTER_ADMIN = "clusterAdmin"
    ADMIN = "admin"
    VIEW = "view"


PrincipalArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:iam::[0-9]{12}:(role|user)/[A-Za-z0-9_+=,.@/-]+$"),
    Allowed("the ARN of an IAM role or user, such as arn:aws:iam::111122223333:role/platform-admins"),
]


class AdminSettings(Section):
    """An IAM principal that may use the Kubernetes API (an EKS access entry)."""

    principal_arn: PrincipalArn
    """Role or user. A role of IAM Identity Center includes its path."""
    scope: Annotated[AccessScope, Allowed("clusterAdmin, admin or view")] = AccessScope.CLUSTER_ADMIN
    """EKS access policy that is associated cluster-wide."""


class SystemNodesSettings(Section):
    """The managed node group that carries controllers, not engines."""

    instance_type: InstanceTypeName = "m7i.xlarge"
    """Instance type without GPUs. A change makes a second group, then drains and deletes the first."""
    count: Annotated[int, *between(2, 20)] = 2
    """How many nodes, spread over the zones: Karpenter's two replicas need one each. Nothing scales them."""


class ClusterSettings(Section):
    """The EKS cluster."""

    name: (
        Annotated[
            str,
            Field(pattern=r"^[a-zA-Z0-9][a-zA-Z0-9_-]{0,99}$"),
            Allowed("letters, digits, '-' and '_', at most 100 characters"),
        ]
        | None
    ) = None
    """Cluster name; `srvmod-<stack>` when left out."""
    kubernetes_version: Annotated[KubernetesVersion, Allowed('"1.36" (in quotes)')] = KubernetesVersion.V1_36
    """Kubernetes minor version."""
    service_cidr: Annotated[
        IPv4Network,
        Allowed(
            "a private IPv4 network of /12 to /24, such as 172.20.0.0/16",
            also=lambda network: _is_private(network) and 12 <= network.prefixlen <= 24,
        ),
    ] = IPv4Network("172.20.0.0/16")
    """Addresses of Services; must not overlap the VPC."""
    endpoint_public_access: Annotated[bool, Allowed("true or false")] = False
    """Whether the API server can be reached from outside the VPC."""
    endpoint_public_access_cidrs: Annotated[
        tuple[Cidr4, ...], LIST, Allowed("a list of different IPv4 networks", also=_unique)
    ] = ()
    """Networks that may reach a public API endpoint."""
    endpoint_private_access_cidrs: Annotated[
        tuple[Cidr4, ...],
        LIST,
        Allowed("a list of different IPv4 networks without host bits, such as [10.20.0.0/16]", also=_unique),
    ] = ()
    """Networks inside or joined to the VPC (runners, a tunnel, a VPN) that may reach the private API endpoint. The
    cluster's own nodes always may; nobody else may unless named here."""
    admins: tuple[AdminSettings, ...] = ()
    """Access entries. Whoever creates the cluster gets none of its own, so the deploying role has to be one of them,
    with scope clusterAdmin."""
    plan_roles: Annotated[
        tuple[PrincipalArn, ...],
        LIST,
        Allowed(
            "a list of different ARNs of IAM roles, such as [arn:aws:iam::111122223333:role/srvmod-plan]", also=_unique
        ),
    ] = ()
    """Roles that preview and look for drift: they may read what the program declares in the cluster, its Secrets
    included, and change nothing."""
    system_nodes: SystemNodesSettings = SystemNodesSettings()
    """Nodes for controllers."""
    deletion_protection: Annotated[bool, Allowed("true or false")] = False
    """Whether EKS refuses to delete the cluster, and the engine to delete or replace VPC, nodes' subnets, cluster and
    weights bucket; required in prod."""


__all__ = [
    "AccessScope",
    "AdminSettings",
    "AwsSettings",
    "ClusterSettings",
    "ExistingNetwork",
    "KubernetesVersion",
    "NatGateways",
    "NetworkSettings",
    "Partition",
    "SystemNodesSettings",
]
