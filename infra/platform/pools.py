"""The pool of p5 nodes."""

from dataclasses import dataclass

import pulumi

from srvmod.infra.platform.documents import pool as documents
from srvmod.infra.platform.objects import declare


@dataclass(frozen=True)
class PoolArgs:
    """The pool, all of it known before anything exists."""

    pool: documents.Pool


class Pool(pulumi.ComponentResource):
    """An EC2NodeClass and a NodePool of the same name.

    The API server accepts a node class that Karpenter later finds wrong; its condition `Ready` says so, and
    nothing launches until it is True.
    """

    name: str

    def __init__(self, name: str, args: PoolArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:platform:Pool", name, None, opts)
        self.name = args.pool.name
        node_class = declare(f"{name}-class", documents.node_class(args.pool), pulumi.ResourceOptions(parent=self))
        declare(
            f"{name}-pool",
            documents.node_pool(args.pool),
            # Deleted before its class: Karpenter needs the class to terminate the pool's nodes.
            pulumi.ResourceOptions(parent=self, depends_on=[node_class]),
        )
        self.register_outputs({"name": self.name})
