"""``pulumi-resource-eks``: serve the component provider, print the port, end with the engine."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Mapping

import pulumi
from pulumi.provider import ConstructResult, Provider, main
from pulumi.runtime.rpc import ResourceModule, register_resource_module

from srvmod.local.providers.eks.cluster import TYPE, Raw, UnhandledArgument, make

VERSION = "4.4.0"


class AwsModule(ResourceModule):
    """Lets references to aws resources arrive as resources whose outputs can be read ."""

    def version(self) -> None:
        return None

    def construct(self, name: str, typ: str, urn: str) -> pulumi.Resource:
        if typ != "aws:iam/role:Role":
            raise UnhandledArgument(f"a reference to {typ} isn't handled by the simulated eks.Cluster")
        return Raw(typ, name, {}, ("arn", "name"), pulumi.ResourceOptions(urn=urn))


class EksProvider(Provider):
    """Constructs eks.Cluster and nothing else."""

    def __init__(self) -> None:
        super().__init__(VERSION)

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: Mapping[str, pulumi.Input[object]],
        options: pulumi.ResourceOptions | None = None,
    ) -> ConstructResult:
        if resource_type != TYPE:
            raise UnhandledArgument(f"{name}: the simulated eks provider has only {TYPE}, not {resource_type}")
        try:
            made = make(name, inputs, options)
        except UnhandledArgument as error:
            raise UnhandledArgument(f"{TYPE} {name!r}: {error}") from error
        return ConstructResult(urn=made.component.urn, state=made.outputs)


def end_with_parent() -> None:
    """The engine kills its plugins when it ends in order; when it was killed itself, nobody does."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


if __name__ == "__main__":
    register_resource_module("aws", "iam/role", AwsModule())
    end_with_parent()
    main(EksProvider(), sys.argv[1:])
