"""Pulumi's provider protocol over the table of types."""
# ruff: noqa: N802 - the protocol names its calls

from __future__ import annotations

import hashlib
import json
import logging
import threading
from typing import Any, NoReturn

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2_grpc, status_pb2
from pulumi.runtime.proto import provider_pb2 as pb

from srvmod.local.providers.aws.base import HalfMade, Resource, same
from srvmod.local.providers.aws.blocks import copy_at, over, value_at, within
from srvmod.local.providers.aws.client import Aws, ConfigError, Refused, configure
from srvmod.local.providers.aws.invokes import INVOKES
from srvmod.local.providers.aws.registry import TYPES
from srvmod.local.providers.values import DEFAULTS, UNKNOWN, Props, read, unknown, write

VERSION = "7.51.1"
log = logging.getLogger("srvmod.local.providers.aws")


def type_of(urn: str) -> str:
    return urn.split("::")[2].rsplit("$", maxsplit=1)[-1]


def name_of(urn: str) -> str:
    return urn.split("::", 3)[-1]


class AwsProvider(provider_pb2_grpc.ResourceProviderServicer):
    """One provider process. Every refusal ends the RPC with a message that names resource, type and argument."""

    def __init__(self, types: dict[str, Resource] | None = None) -> None:
        self.types = types or TYPES
        self.aws: Aws | None = None
        self.stopped = threading.Event()

    # -- about itself -------------------------------------------------------------------------------------------
    def Handshake(self, request: Any, context: Any) -> Any:
        return pb.ProviderHandshakeResponse()

    def Attach(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    def GetSchema(self, request: Any, context: Any) -> Any:
        return pb.GetSchemaResponse(schema=json.dumps({"name": "aws", "version": VERSION}))

    def GetMapping(self, request: Any, context: Any) -> Any:
        return pb.GetMappingResponse()

    def Cancel(self, request: Any, context: Any) -> Any:
        self.stopped.set()
        return empty_pb2.Empty()

    # -- configuration ------------------------------------------------------------------------------------------
    def CheckConfig(self, request: Any, context: Any) -> Any:
        return pb.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        old, new = read(request.old_inputs or request.olds), read(request.news)
        changed = sorted(k for k in {*old, *new} if old.get(k) != new.get(k) and k != "version")
        replaces = [k for k in changed if k == "region"]
        kind = pb.DiffResponse.DIFF_SOME if changed else pb.DiffResponse.DIFF_NONE
        return pb.DiffResponse(changes=kind, diffs=changed, replaces=replaces)

    def Configure(self, request: Any, context: Any) -> Any:
        settings = read(request.args)
        if unknown(settings):
            _abort(context, grpc.StatusCode.INVALID_ARGUMENT, "the simulated aws provider needs known settings")
        try:
            self.aws = configure(settings)
        except ConfigError as error:
            _abort(context, grpc.StatusCode.INVALID_ARGUMENT, str(error))
        return pb.ConfigureResponse(supportsPreview=True, supports_autonaming_configuration=True)

    # -- resources ----------------------------------------------------------------------------------------------
    def _type(self, urn: str, context: Any) -> Resource:
        found = self.types.get(type_of(urn))
        if found is None:
            _abort(
                context,
                grpc.StatusCode.UNIMPLEMENTED,
                f"{name_of(urn)}: the simulated aws provider has no type {type_of(urn)}; "
                f"add it to local/providers/aws (it has {len(self.types)} types)",
            )
        return found

    def _aws(self, context: Any) -> Aws:
        if self.aws is None:
            _abort(context, grpc.StatusCode.FAILED_PRECONDITION, "the simulated aws provider isn't configured")
        return self.aws

    def Check(self, request: Any, context: Any) -> Any:
        kind, olds, news = self._type(request.urn, context), read(request.olds), read(request.news)
        news.pop(DEFAULTS, None)
        if news.get("region") == self._aws(context).region:
            news.pop("region")
        failures = [pb.CheckFailure(property=p, reason=f"{name_of(request.urn)}: {p} {r}")
                    for p, r in kind.problems(news) if p != kind.autoname]  # fmt: skip
        if kind.autoname and kind.autoname not in news:
            news |= {kind.autoname: self._name(kind, request, olds), DEFAULTS: [kind.autoname]}
        return pb.CheckResponse(inputs=write(news), failures=failures)

    def _name(self, kind: Resource, request: Any, olds: Props) -> str:
        """As the real provider: the name given before, the one the engine proposes, or the resource's with a suffix."""
        if kind.autoname in olds.get(DEFAULTS, []):
            return str(olds[str(kind.autoname)])
        if request.HasField("autonaming") and request.autonaming.proposed_name:
            return str(request.autonaming.proposed_name)
        seed = request.randomSeed or request.urn.encode()
        suffix = hashlib.sha256(seed).hexdigest()[:7]
        return f"{name_of(request.urn)[: kind.longest_name - 8]}-{suffix}"

    def Diff(self, request: Any, context: Any) -> Any:
        kind, old, new = self._type(request.urn, context), read(request.old_inputs), read(request.news)
        for ignored in request.ignoreChanges:
            copy_at(ignored.split("."), old, new)
        changes = kind.changes(old, new)
        if "tags" in kind.args and not unknown(new.get("tags")) and not changes:
            state = read(request.olds)
            if state.get("tagsAll", {}) != self._aws(context).tags(new) and "tagsAll" in state:
                changes["tagsAll"] = False
        replaces = [p for p, new_one in changes.items() if new_one]
        name = kind.autoname
        fixed = name is not None and name in new and old.get(name) == new[name] and name not in new.get(DEFAULTS, [])
        detailed = {
            path: pb.PropertyDiff(kind=_diff_kind(path, old, new, new_one), inputDiff=True)
            for path, new_one in changes.items()
        }
        return pb.DiffResponse(
            changes=pb.DiffResponse.DIFF_SOME if changes else pb.DiffResponse.DIFF_NONE,
            diffs=sorted({p.split(".")[0] for p in changes}), replaces=replaces,
            deleteBeforeReplace=bool(replaces) and fixed, detailedDiff=detailed, hasDetailedDiff=True,
        )  # fmt: skip

    def Create(self, request: Any, context: Any) -> Any:
        kind, props, aws = self._type(request.urn, context), read(request.properties), self._aws(context)
        if request.preview:
            return pb.CreateResponse(properties=write(self._planned(kind, aws, props)))
        try:
            identity = kind.create(aws, props)
        except HalfMade as error:
            self._half_made(context, request.urn, error.identity, props, error)
        except (Refused, KeyError, ValueError) as error:
            self._refuse(context, request.urn, "creation", error)
        try:
            state = kind.read(aws, identity, props)
            if state is None:
                raise ValueError(f"{identity} is gone right after creation")
            found = self._state(kind, aws, props, state)
        except (Refused, KeyError, ValueError) as error:
            self._half_made(context, request.urn, identity, props, error)
        return pb.CreateResponse(id=identity, properties=write(found))

    def Read(self, request: Any, context: Any) -> Any:
        kind, aws = self._type(request.urn, context), self._aws(context)
        old_inputs, old_state = read(request.inputs), read(request.properties)
        try:
            state = kind.read(aws, request.id, {**old_state, **old_inputs})
        except (Refused, KeyError, ValueError) as error:
            if not (isinstance(error, Refused) and error.missing):
                self._refuse(context, request.urn, "reading", error)
            state = None
        if state is None:
            return pb.ReadResponse(id="")
        inputs: Props = {DEFAULTS: old_inputs[DEFAULTS]} if DEFAULTS in old_inputs else {}
        for name, arg in kind.args.items():
            if old_inputs and name not in old_inputs and name != "tags":
                continue
            value = state.get(name, old_inputs.get(name))
            if name == "tags":
                value = {k: v for k, v in (value or {}).items() if aws.default_tags.get(k) != v}
                value = value or ({} if name in old_inputs else None)
            if value is not None:
                value = within(old_inputs.get(name), value)
                inputs[name] = old_inputs[name] if same(old_inputs.get(name), value, arg) else value
        return pb.ReadResponse(
            id=request.id, inputs=write(inputs), properties=write(self._state(kind, aws, inputs, state))
        )

    def Update(self, request: Any, context: Any) -> Any:
        kind, aws, new = self._type(request.urn, context), self._aws(context), read(request.news)
        old = over(read(request.olds), read(request.old_inputs))
        if request.preview:
            return pb.UpdateResponse(properties=write({**read(request.olds), **self._planned(kind, aws, new, old)}))
        try:
            kind.update(aws, request.id, old, new)
            state = kind.read(aws, request.id, new)
        except (Refused, KeyError, ValueError, NotImplementedError) as error:
            self._refuse(context, request.urn, "update", error)
        if state is None:
            _abort(context, grpc.StatusCode.NOT_FOUND, f"{name_of(request.urn)}: {request.id} doesn't exist any more")
        return pb.UpdateResponse(properties=write(self._state(kind, aws, new, state)))

    def Delete(self, request: Any, context: Any) -> Any:
        kind = self._type(request.urn, context)
        try:
            kind.delete(self._aws(context), request.id, {**read(request.properties), **read(request.old_inputs)})
        except (Refused, KeyError, ValueError) as error:
            if not (isinstance(error, Refused) and error.missing):
                self._refuse(context, request.urn, "deletion", error)
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:
        function = INVOKES.get(request.tok)
        if function is None:
            _abort(context, grpc.StatusCode.UNIMPLEMENTED, f"the simulated aws provider has no function {request.tok}")
        try:
            answer: Any = {"return": write(function(self._aws(context), read(request.args)))}
            return pb.InvokeResponse(**answer)
        except (Refused, KeyError, ValueError) as error:
            _abort(context, grpc.StatusCode.INVALID_ARGUMENT, f"{request.tok}: {error}")

    # -- help ---------------------------------------------------------------------------------------------------
    def _state(self, kind: Resource, aws: Aws, inputs: Props, found: Props) -> Props:
        """Outputs: what was read, with the arguments as the program wrote them, and only what is declared."""
        state = {k: v for k, v in found.items() if k in kind.outputs or k in kind.args}
        for name, value in inputs.items():
            if name in kind.args:
                state[name] = over(state.get(name), value)
        if "tags" in kind.args:
            state["tagsAll"] = aws.tags(inputs)
        if lacking := [o for o in kind.outputs if o not in state]:
            raise KeyError(f"{kind.token} didn't give its outputs {lacking}")
        return state

    def _planned(self, kind: Resource, aws: Aws, inputs: Props, old: Props | None = None) -> Props:
        """Outputs at preview: the arguments, and unknowns for what only exists afterwards (or stays as it was)."""
        outputs = {name: (old or {}).get(name, UNKNOWN) for name in kind.outputs}
        state = {**outputs, **{k: v for k, v in inputs.items() if k != DEFAULTS}}
        for block, names in kind.nested_outputs.items():
            if isinstance(inputs.get(block), dict):
                before = (old or {}).get(block, {})
                state[block] = {**{n: before.get(n, UNKNOWN) for n in names}, **inputs[block]}
        if "tags" in kind.args:
            state["tagsAll"] = UNKNOWN if inputs.get("tags") == UNKNOWN else aws.tags(inputs)
        return state

    def _half_made(self, context: Any, urn: str, identity: str, props: Props, error: Exception) -> NoReturn:
        """End the RPC so that the engine keeps the resource, as one whose creation didn't finish."""
        message = f"creation of {type_of(urn)} {name_of(urn)!r} ({identity}) didn't finish: {_told(error)}"
        log.warning(message)
        inputs = write(props)
        detail = pb.ErrorResourceInitFailed(id=identity, properties=inputs, reasons=[message], inputs=inputs)
        status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=message)
        status.details.add().Pack(detail)
        context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
        _abort(context, grpc.StatusCode.UNKNOWN, message)

    def _refuse(self, context: Any, urn: str, doing: str, error: Exception) -> NoReturn:
        message = f"{doing} of {type_of(urn)} {name_of(urn)!r}: {_told(error)}"
        log.warning(message)
        _abort(context, grpc.StatusCode.UNKNOWN, message)


def _abort(context: Any, code: grpc.StatusCode, message: str) -> NoReturn:
    """End the RPC with an error; grpc's own `abort` raises, but isn't typed so."""
    context.abort(code, message)
    raise AssertionError("grpc's abort always raises")


def _told(error: Exception) -> str:
    """An error as a sentence; a KeyError means that the answer of AWS lacks something."""
    return f"no {error} in the answer" if isinstance(error, KeyError) else str(error)


def _diff_kind(path: str, old: Props, new: Props, replace: bool) -> Any:
    before, after = value_at(path, old), value_at(path, new)
    kind = "ADD" if before is None else "DELETE" if after is None else "UPDATE"
    return pb.PropertyDiff.Kind.Value(f"{kind}_REPLACE" if replace else kind)
