"""Weights on the nodes."""

from dataclasses import dataclass

import pulumi

from srvmod.infra.platform.objects import declare
from srvmod.infra.serving.documents import network
from srvmod.infra.serving.documents import weight_cache as documents


@dataclass(frozen=True)
class WeightCacheArgs:
    """The cache, all of it known before anything exists; Prometheus runs in `metrics_namespace`."""

    cache: documents.WeightCache
    metrics_namespace: str


class WeightCache(pulumi.ComponentResource):
    """The weight-cache DaemonSet with its identity: no engine starts on a node that it hasn't finished."""

    def __init__(self, name: str, args: WeightCacheArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:serving:WeightCache", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        identity = [
            declare(f"{name}-account", documents.service_account(args.cache), child, awaited=False),
            declare(f"{name}-role", documents.cluster_role(), child),
            declare(f"{name}-binding", documents.cluster_role_binding(args.cache), child),
            declare(f"{name}-pods-role", documents.role(args.cache), child),
            declare(f"{name}-pods-binding", documents.role_binding(args.cache), child),
            declare(
                f"{name}-network",
                network.weight_cache_policy(args.cache.namespace, args.metrics_namespace),
                child,
            ),
        ]
        declare(
            name,
            documents.daemon_set(args.cache),
            pulumi.ResourceOptions(parent=self, depends_on=identity),
            awaited=False,
        )
        self.register_outputs({})
