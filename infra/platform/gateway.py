"""The gateway in front of the engines."""

from dataclasses import dataclass

import pulumi

from srvmod.infra.platform.documents import gateway as documents
from srvmod.infra.platform.objects import declare


@dataclass(frozen=True)
class GatewayArgs:
    """The gateway, all of it known before anything exists."""

    gateway: documents.Gateway


class Gateway(pulumi.ComponentResource):
    """GatewayClass, EnvoyProxy, Gateway and ClientTrafficPolicy.

    Not awaited: a Gateway is Programmed when its load balancer is, which Envoy Gateway reports in its status.
    """

    name: str
    namespace: str

    def __init__(self, name: str, args: GatewayArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:platform:Gateway", name, None, opts)
        self.name, self.namespace = documents.GATEWAY, args.gateway.namespace
        child = pulumi.ResourceOptions(parent=self)
        declare(f"{name}-class", documents.gateway_class(), child)
        proxy = declare(f"{name}-proxy", documents.envoy_proxy(args.gateway), child)
        listener = declare(
            f"{name}-gateway",
            documents.gateway(args.gateway),
            pulumi.ResourceOptions(parent=self, depends_on=[proxy]),
            awaited=False,
        )
        declare(
            f"{name}-clients",
            documents.client_traffic_policy(args.gateway),
            pulumi.ResourceOptions(parent=self, depends_on=[listener]),
        )
        self.register_outputs({"name": self.name, "namespace": self.namespace})
