"""The way from the gateway to the engines, and the keys that open it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi

from srvmod.infra.platform.objects import declare
from srvmod.infra.serving.documents import route as documents


@dataclass(frozen=True)
class RoutesArgs:
    """`keys` maps each client of `clients` to its API key and has to be a secret."""

    route: documents.Route
    clients: Sequence[str]
    keys: pulumi.Output[Mapping[str, str]]


class Routes(pulumi.ComponentResource):
    """HTTPRoute with its traffic and security policies. The policies come first: no moment without keys."""

    def __init__(self, name: str, args: RoutesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:serving:Routes", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        secret = declare(
            f"{name}-keys",
            documents.api_keys(args.route.namespace, args.keys.apply(documents.encoded), args.clients),
            child,
        )
        security = declare(
            f"{name}-security",
            documents.security_policy(args.route.namespace),
            pulumi.ResourceOptions(parent=self, depends_on=[secret]),
        )
        traffic = declare(f"{name}-traffic", documents.backend_traffic_policy(args.route), child)
        declare(
            name,
            documents.http_route(args.route),
            pulumi.ResourceOptions(parent=self, depends_on=[security, traffic]),
        )
        self.register_outputs({})
