"""Sections about what surrounds the engines: gateway, images, charts."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from srvmod.infra.draining import LONGEST_STREAM_SECONDS, NODE_UPDATE_SECONDS
from srvmod.infra.settings.base import Allowed, HostName, ImageReference, Name, Names, Section, count


class GatewayScheme(StrEnum):
    """Who reaches the load balancer in front of Envoy."""

    INTERNAL = "internal"
    INTERNET_FACING = "internet-facing"


class GatewaySettings(Section):
    """The endpoint that clients use."""

    hostname: HostName | None = None
    """DNS name that the route answers to; any when left out."""
    tls_secret: Name | None = None
    """Secret in the serving namespace with the certificate; Envoy ends TLS."""
    certificate_arn: (
        Annotated[
            str,
            Field(pattern=r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:[0-9]{12}:certificate/[0-9a-f-]{36}$"),
            Allowed("the ARN of an ACM certificate"),
        ]
        | None
    ) = None
    """Certificate of the load balancer, which then ends TLS."""
    replicas: Annotated[int, *count(1, 50)] = 2
    """Envoy pods."""
    max_replicas: Annotated[int, *count(1, 50)] | None = None
    """Most Envoy pods: above `replicas` they follow their CPU. System nodes need room for them."""
    max_stream_seconds: Annotated[
        int,
        Field(ge=10, le=LONGEST_STREAM_SECONDS),
        Allowed(
            f"a whole number from 10 to {LONGEST_STREAM_SECONDS}: an Envoy ends its streams before its node goes, and "
            f"EKS's update of system nodes fails where that takes longer than {NODE_UPDATE_SECONDS} s"
        ),
    ] = 600
    """Longest stream; longer ones are cut."""
    scheme: Annotated[GatewayScheme, Allowed("internal or internet-facing")] = GatewayScheme.INTERNAL
    """Load balancer inside the VPC or on the Internet."""
    api_clients: Names = ("default",)
    """Clients with an API key each; the keys are in the secret `srvmod:apiKeys`."""

    @property
    def tls(self) -> bool:
        """Whether clients connect by TLS."""
        return self.tls_secret is not None or self.certificate_arn is not None


class ImagesSettings(Section):
    """Where images come from."""

    registry: (
        Annotated[
            str,
            Field(pattern=r"^[a-z0-9][a-z0-9.-]*(:[0-9]+)?(/[a-z0-9][a-z0-9._-]*)*$", max_length=256),
            Allowed("a registry with an optional path, such as 111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror"),
        ]
        | None
    ) = None
    """Mirror for images of controllers and daemons; their own registries when left out."""
    weight_cache: ImageReference | None = None
    """Image of the weight cache; the stack's own ECR repository when left out."""


class ChartMode(StrEnum):
    """Whether the program installs a controller's chart, or the cluster has that controller already."""

    INSTALL = "install"
    EXISTING = "existing"


Mode = Annotated[ChartMode, Allowed("install or existing")]


class ChartsSettings(Section):
    """Controllers that come as charts."""

    repository: (
        Annotated[
            str,
            Field(pattern=r"^(oci|https)://[A-Za-z0-9][A-Za-z0-9.:/_-]*$", max_length=512),
            Allowed("an oci:// or https:// address"),
        ]
        | None
    ) = None
    """Mirror of the chart repositories; their own addresses when left out."""
    karpenter: Mode = ChartMode.INSTALL
    """Karpenter for AWS."""
    envoy_gateway: Mode = ChartMode.INSTALL
    """Envoy Gateway."""
    keda: Mode = ChartMode.INSTALL
    """KEDA, which scales engines."""
    load_balancer_controller: Mode = ChartMode.INSTALL
    """AWS Load Balancer Controller, which makes the gateway's load balancer."""
    prometheus_stack: Mode = ChartMode.INSTALL
    """kube-prometheus-stack."""


__all__ = ["ChartMode", "ChartsSettings", "GatewayScheme", "GatewaySettings", "ImagesSettings"]
