"""The engines' scaler."""

from dataclasses import dataclass

import pulumi

from srvmod.infra.platform.objects import declare
from srvmod.infra.serving.documents import scaler as documents


@dataclass(frozen=True)
class AutoscalingArgs:
    """The scaler; all but a managed Prometheus' address is known before anything exists."""

    scaler: documents.Scaler


class Autoscaling(pulumi.ComponentResource):
    """ScaledObject of the engines, and how KEDA signs its questions where Prometheus is Amazon's.

    The Deployment's replicas are the scaler's; the program never says them.
    """

    def __init__(self, name: str, args: AutoscalingArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:serving:Autoscaling", name, None, opts)
        identity: list[pulumi.Resource] = []
        if args.scaler.amazon_region:
            document = documents.trigger_authentication(args.scaler.namespace)
            identity.append(declare(f"{name}-identity", document, pulumi.ResourceOptions(parent=self)))
        opts = pulumi.ResourceOptions(parent=self, depends_on=identity)
        declare("scaler", documents.scaled_object(args.scaler), opts, awaited=False)
        self.register_outputs({})
