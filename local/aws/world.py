"""What moto doesn't know: the state of our own services, and the facts that tests and operators may set."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from srvmod.infra.versions import ADDONS

DEFAULT_ACCOUNT = "123456789012"

# Where AWS's page gives a value it is the default of a new account, except for the P instances, whose default of
# zero would make every stack of this product fail; 40 nodes' worth lets all environments start.
QUOTAS: dict[tuple[str, str], tuple[str, float, str]] = {
    ("ec2", "L-417A185B"): ("Running On-Demand P instances", 192.0 * 40, "vCPU"),
    ("ec2", "L-7212CCBC"): ("All P4, P3 and P2 Spot Instance Requests", 0.0, "vCPU"),
    ("ec2", "L-1216C47A"): ("Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances", 256.0, "vCPU"),
    ("ec2", "L-0263D0A3"): ("EC2-VPC Elastic IPs", 5.0, "None"),
    ("vpc", "L-F678F1CE"): ("VPCs per Region", 5.0, "None"),
    ("vpc", "L-FE5A380F"): ("NAT gateways per Availability Zone", 5.0, "None"),
    ("eks", "L-1194D53C"): ("Clusters", 100.0, "None"),
}


@dataclass(frozen=True)
class Price:
    """An hourly on-demand price for Linux, shared tenancy. ``source`` says where the figure is from, and when."""

    usd: float
    source: str


@dataclass(frozen=True)
class KubernetesVersion:
    """One EKS version and the end of its standard support (None: not established)."""

    version: str
    end_of_standard: date | None
    default: bool = False


@dataclass(frozen=True)
class Image:
    """One EKS-optimised AL2023 AMI: ``release`` like 20260714, ``variant`` standard, nvidia or neuron."""

    image_id: str
    kubernetes: str
    architecture: str
    variant: str
    release: str

    @property
    def name(self) -> str:
        return f"amazon-eks-node-al2023-{self.architecture}-{self.variant}-{self.kubernetes}-v{self.release}"


@dataclass
class Fault:
    """An error that the next calls get instead of an answer. ``times`` counts down; -1 is for ever."""

    service: str
    operation: str
    code: str
    message: str
    status: int = 400
    times: int = -1


@dataclass(frozen=True)
class Endpoint:
    """The API server that simulated clusters have: what CreateCluster would have made. ``ca`` is base64 PEM."""

    url: str
    ca: str


PRICES = {
    "p5.48xlarge": Price(55.04, "us-east-1 on demand, third-party data set retrieved 2026-11-09, not AWS's own list"),
    # Karpenter exits when a region has no bare-metal product at all; nothing here ever launches one
    "m7i.metal-24xl": Price(4.8384, "us-east-1 on demand, as m7i.24xlarge; from memory, decides nothing"),
}
VERSIONS = (
    # end of standard support: 1.34 and 1.35 from AWS's release calendar; later ones aren't established
    KubernetesVersion("1.34", date(2026, 12, 2)),
    KubernetesVersion("1.35", date(2027, 3, 27)),
    KubernetesVersion("1.36", None, default=True),
)

# versions of each add-on, for every Kubernetes version: those that the program pins, and nothing else
ADDON_VERSIONS = {addon.name: (addon.version,) for addon in ADDONS}


@dataclass
class World:
    """All state of our own; moto's own backends hold the rest. Per region where AWS is."""

    account: str = DEFAULT_ACCOUNT
    endpoint: Endpoint | None = None
    started: datetime = field(default_factory=lambda: datetime.now(UTC))
    quotas: dict[tuple[str, str], tuple[str, float, str]] = field(default_factory=lambda: dict(QUOTAS))
    prices: dict[str, Price] = field(default_factory=lambda: dict(PRICES))
    versions: tuple[KubernetesVersion, ...] = VERSIONS
    addons: dict[str, tuple[str, ...]] = field(default_factory=lambda: dict(ADDON_VERSIONS))
    images: list[Image] = field(default_factory=list)
    reservations: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    clusters: dict[str, dict[str, Any]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    offerings_denied: set[tuple[str, str]] = field(default_factory=set)
