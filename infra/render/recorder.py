"""Runs a Pulumi program in this process and records every resource it registers.

The seam is `set_mocks(..., monitor=...)`: a MockMonitor sees the whole registration request (parent, provider,
dependencies), of which `Mocks.new_resource` sees only the inputs.
"""

import contextvars
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pulumi
from google.protobuf import struct_pb2
from pulumi.runtime import mocks, rpc
from pulumi.runtime.proto import resource_pb2
from pulumi.runtime.stack import Stack

from srvmod.infra.render.cloud import PlaceholderCloud

ROOT = "pulumi:pulumi:Stack"
SECRET_MASK = "[secret]"


@dataclass(frozen=True)
class Recorded:
    """A registered resource; `inputs` are plain values with secrets masked and unknowns as UNKNOWN."""

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    parent: str
    provider: str
    dependencies: tuple[str, ...]
    custom: bool
    remote: bool
    protect: bool


@dataclass
class Graph:
    """What one run registered, and what it exported."""

    requests: dict[str, resource_pb2.RegisterResourceRequest] = field(default_factory=dict[str, Any])
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])

    @cached_property
    def resources(self) -> dict[str, Recorded]:
        """Resources by URN, sorted: the order of registration differs from run to run."""
        return {urn: _recorded(urn, self.requests[urn]) for urn in sorted(self.requests)}

    def of_type(self, kind: str) -> list[Recorded]:
        """Resources of a type token, sorted by URN."""
        return [resource for resource in self.resources.values() if resource.type == kind]


def _recorded(urn: str, request: Any) -> Recorded:
    return Recorded(
        urn=urn,
        type=request.type,
        name=request.name,
        inputs=plain(rpc.deserialize_properties(request.object, keep_unknowns=True)),
        parent=request.parent,
        provider=request.provider,
        dependencies=tuple(sorted(request.dependencies)),
        custom=request.custom,
        remote=request.remote,
        protect=request.protect,
    )


UNKNOWN = "<unknown until deployed>"


class Recorder(mocks.MockMonitor):
    """A monitor that keeps what is registered."""

    def __init__(self, cloud: PlaceholderCloud) -> None:
        super().__init__(cloud)
        self.cloud = cloud
        self.graph = Graph()
        cloud.monitor = self

    def GetDeploymentInfo(self, request: Any) -> resource_pb2.DeploymentInfo:  # noqa: N802 - gRPC's name
        """Without resource references: with them the monitor would rebuild resources on a thread of its own."""
        info = super().GetDeploymentInfo(request)
        references = resource_pb2.RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES
        return resource_pb2.DeploymentInfo(
            supportedFeatures=[feature for feature in info.supportedFeatures if feature != references]
        )

    def reference(self, kind: str, name: str, state: Mapping[str, Any]) -> dict[str, Any]:
        """Register a resource that a remote component made, and refer to it as the engine would."""
        urn = self.make_urn("", kind, name)
        identity = f"<{name}:id>"
        self.resources[urn] = self.ResourceRegistration(urn, identity, dict(state))
        return {
            rpc._special_sig_key: rpc._special_resource_sig,
            "urn": urn,
            "id": identity,
            "packageVersion": "",
        }

    def RegisterResource(self, request: Any) -> resource_pb2.RegisterResourceResponse:  # noqa: N802 - gRPC's name
        """Keep the request and answer with its inputs and what the cloud computes; nothing is deserialised here."""
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == ROOT:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        self.graph.requests[urn] = request
        identity, computed = self.cloud.computed(request.type, request.name, request.object)
        state = struct_pb2.Struct()
        state.CopyFrom(request.object)
        state.update(computed)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=identity, object=state)


def record(
    program: Callable[[], None],
    *,
    stack: str,
    known: bool = True,
    config: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
    secret_keys: tuple[str, ...] = (),
) -> Graph:
    """Run `program` to its end and return its graph. Repeatable: every run has a context of its own.

    `known=False` runs it as a first preview. Errors of the program are raised as they are.
    """
    cloud = PlaceholderCloud(known=known, secrets=secrets)
    monitor = Recorder(cloud)
    preview = not known

    def body() -> None:
        pulumi.runtime.reset_options(project="srvmod", stack=stack, preview=preview)
        pulumi.runtime.set_all_config(dict(config or {}), list(secret_keys))
        mocks.set_mocks(cloud, project="srvmod", stack=stack, preview=preview, monitor=monitor)

        def run() -> pulumi.Output[Any]:
            program()
            root = pulumi.runtime.get_root_resource()
            assert isinstance(root, Stack)
            return pulumi.Output.all(*[_export(monitor.graph, name, root.outputs[name]) for name in root.outputs])

        pulumi.runtime.test(run)()

    contextvars.copy_context().run(body)
    return monitor.graph


def _export(graph: Graph, name: str, value: Any) -> pulumi.Output[None]:
    """Keep an output; one that is unknown keeps its name and UNKNOWN."""
    graph.outputs[name] = UNKNOWN
    return pulumi.Output.from_input(value).apply(lambda known: graph.outputs.__setitem__(name, known))


def plain(value: Any) -> Any:
    """A value as YAML has it: whole numbers as integers, secrets masked, unknowns named."""
    if isinstance(value, pulumi.output.Unknown) or value == rpc.UNKNOWN:
        return UNKNOWN
    if rpc.is_rpc_secret(value):
        return _masked(rpc.unwrap_rpc_secret(value))
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _masked(value: Any) -> Any:
    """Keys of a secret mapping are no secrets, its values are."""
    if isinstance(value, Mapping):
        return {key: _masked(item) for key, item in value.items()}
    return SECRET_MASK
