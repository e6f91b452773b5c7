"""Controllers that come as Helm charts: installed here, or taken as they are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from srvmod.infra.versions import Chart

INSTALL_TIMEOUT_SECONDS = 600


@dataclass(frozen=True)
class ControllerArgs:
    """`title` is what people call it. `charts` are installed in order: a chart of CRDs comes before the
    controller's own, which alone gets `values`. `existing` means that the cluster has it already. `mirror`
    replaces the charts' repositories."""

    title: str
    namespace: str
    charts: Sequence[Chart]
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    existing: bool = False
    mirror: str | None = None
    create_namespace: bool = False


class Controller(pulumi.ComponentResource):
    """A controller of somebody else's. With `existing` it creates nothing and says so in the log.

    Other resources depend on the component: its charts' objects are then in place before theirs.
    """

    installed: bool
    namespace: str

    def __init__(self, name: str, args: ControllerArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:platform:Controller", name, None, opts)
        self.installed, self.namespace = not args.existing, args.namespace
        if args.existing:
            pulumi.log.info(f"{args.title}: existing, taken as it is; nothing is installed", self)
        else:
            self._install(name, args)
        self.register_outputs({"installed": self.installed})

    def _install(self, name: str, args: ControllerArgs) -> None:
        previous: list[pulumi.Resource] = []
        for chart in args.charts:
            repository = args.mirror or chart.repository
            oci = repository.startswith("oci://")
            own = chart is args.charts[-1]
            release = k8s.helm.v3.Release(
                f"{name}-{chart.name}",
                name=chart.name,
                namespace=args.namespace,
                create_namespace=args.create_namespace,
                chart=f"{repository}/{chart.name}" if oci else chart.name,
                version=chart.version,
                repository_opts=None if oci else k8s.helm.v3.RepositoryOptsArgs(repo=repository),
                values=dict(args.values) if own else {},
                atomic=True,
                cleanup_on_fail=True,
                timeout=INSTALL_TIMEOUT_SECONDS,
                opts=pulumi.ResourceOptions(parent=self, depends_on=previous),
            )
            previous = [release]
