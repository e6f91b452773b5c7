"""The engines."""

from dataclasses import dataclass

import pulumi

from srvmod.infra.platform.objects import declare
from srvmod.infra.serving.documents import engine as documents
from srvmod.infra.serving.documents import island


@dataclass(frozen=True)
class EnginesArgs:
    """The engine; `gateway_namespace` and `metrics_namespace` are where Envoy and Prometheus run. Unless `started`,
    everything is declared but the engines themselves: nothing then asks for a GPU node."""

    engine: documents.Engine
    gateway_namespace: str
    metrics_namespace: str
    started: bool = True


class Engines(pulumi.ComponentResource):
    """Deployment of engines with island check, Service, disruption budget and network policy.

    Not awaited: the first engine needs a p5 to boot, an image, and weights that somebody has uploaded.
    """

    def __init__(self, name: str, args: EnginesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:serving:Engines", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        namespace = args.engine.namespace
        guards = [
            declare(f"{name}-budget", documents.disruption_budget(namespace), child, awaited=False),
            declare(
                f"{name}-network",
                documents.network_policy(namespace, args.gateway_namespace, args.metrics_namespace),
                child,
            ),
            declare(f"{name}-island-check", island.config_map(namespace), child),
            declare(f"{name}-service", documents.service(namespace), child, awaited=False),
        ]
        if args.started:
            declare(
                name,
                documents.deployment(args.engine),
                pulumi.ResourceOptions(parent=self, depends_on=guards),
                awaited=False,
            )
        else:
            pulumi.log.warn("engine.started is false: no engine runs and no GPU node is asked for", self)
        self.register_outputs({})
