"""The pack's policies: for each clause one on every resource and one on the stack; levels and numbers by schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)

from srvmod.contract import Clause
from srvmod.policies.check import Result
from srvmod.policies.config import Config, from_values
from srvmod.policies.pack.verdicts import Declared, key, of_resource, of_stack
from srvmod.policies.rules import Finding, Severity, Topic

NAME = "srvmod"
ADVICE = "advice"
STACK = "-stack"
ABOUT: Mapping[Clause | Topic, str] = {
    Clause.MC_HW_01: "one engine is tensor-parallel 4 on four whole H100 of one p5.48xlarge, in one pod",
    Clause.MC_KV_01: "KV cache in blocks of 16, FP8 weights, and room for the declared contexts",
    Clause.MC_CB_01: "continuous batching that nothing throttles below the sessions per engine",
    Clause.MC_SE_01: "token by token from engine to client, with no deadline, buffer or compression on the way",
    Clause.INV_SRVMOD_01: "iteration-level batching, shown by the configuration",
    Clause.INV_SRVMOD_02: "p95 inter-token latency of 30 ms: measured, alerted on, and followed by the scaler",
    Clause.INV_SRVMOD_03: "tensor-parallel groups stay on NVLink, on one NUMA node of one machine",
    Topic.ENGINE_VERSION: "options and metrics that the pinned engine version has",
    Topic.OPERATIONS: "what makes engines restart, hang or cut streams although every clause is kept",
}
FIELDS: Mapping[Clause | Topic, tuple[str, ...]] = {
    Clause.MC_HW_01: ("instanceType",),
    Clause.MC_KV_01: ("sessions", "model", "models"),
    Clause.MC_CB_01: ("sessions",),
    Clause.MC_SE_01: ("model", "models"),
    Clause.INV_SRVMOD_01: ("engines",),
    Clause.INV_SRVMOD_02: (),
    Clause.INV_SRVMOD_03: (),
    Topic.ENGINE_VERSION: ("engineVersion", "model", "models"),
    Topic.OPERATIONS: (),
}
"""What may be configured, by clause; `whole` and `levels` for each."""
ON_RESOURCES = tuple(clause for clause in ABOUT if isinstance(clause, Clause))


def policies(declared: Declared | None = None) -> list[Policy]:
    """All policies. They share `declared`: what resource policies see is what stack policies judge."""
    store = Declared() if declared is None else declared
    made: list[Policy] = []
    for clause in ON_RESOURCES:
        made.append(
            ResourceValidationPolicy(
                name=clause.value,
                description=f"{clause.value}: {ABOUT[clause]}",
                validate=_resource(clause, store),
                config_schema=_schema(clause, whole=False),
            )
        )
    for clause, about in ABOUT.items():
        made.append(
            StackValidationPolicy(
                name=f"{clause.value}{STACK}",
                description=f"{clause.value}: {about}",
                validate=_stack(clause, store),
                config_schema=_schema(clause, whole=True),
            )
        )
    made.append(
        StackValidationPolicy(
            name=ADVICE,
            description="what costs something, what isn't judged, and what is waived",
            validate=_advice(store),
            enforcement_level=EnforcementLevel.ADVISORY,
            config_schema=PolicyConfigSchema(_properties()),
        )
    )
    return made


def configuration(given: Mapping[str, Any] | None) -> Config:
    """The configuration of a policy; a stack is everything that is applied, unless the configuration says otherwise.

    Raises ConfigError, which names every problem.
    """
    values: dict[str, Any] = {"whole": True, **{name: _whole(value) for name, value in (given or {}).items()}}
    return from_values(values, "policy configuration")


def message(finding: Finding) -> str:
    """A finding as the engine prints it, under the policy's own line."""
    place = finding.place
    where = " ".join(part for part in (place.object, place.path) if part)
    told = f"{finding.clause.value}/{finding.rule}: {finding.what}"
    return f"{told}\nat:  {where}\nwhy: {finding.why}\nfix: {finding.fix}"


def _resource(clause: Clause, declared: Declared) -> Any:
    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        node = declared.add(args.urn, args.resource_type, args.props)
        if node is None:
            return
        for finding in of_resource(args.urn, node, configuration(args.get_config())):
            if finding.clause is clause:
                declared.reported.add(key(finding))
                report(message(finding), None)

    return validate


def _stack(clause: Clause | Topic, declared: Declared) -> Any:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        result = _judged(args, declared)
        for finding in result.findings:
            if finding.clause is not clause or key(finding) in declared.reported:
                continue
            if finding.severity in {Severity.ERROR, Severity.UNKNOWN}:
                report(message(finding), _urn(finding))
        if clause is Clause.INV_SRVMOD_01:
            for unread in result.unread:
                report(f"can't be read: {unread.why}\nfix: {unread.fix}", unread.place.source)

    return validate


def _advice(declared: Declared) -> Any:
    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        result = _judged(args, declared)
        for finding in result.findings:
            if finding.severity in {Severity.WARNING, Severity.NOTE}:
                report(message(finding), _urn(finding))
        for finding, waiver in result.waived:
            report(f"waived until {waiver.until}: {waiver.reason}\n{message(finding)}", _urn(finding))

    return validate


def _judged(args: StackValidationArgs, declared: Declared) -> Result:
    resources = [(one.urn, one.resource_type, one.props) for one in args.resources]
    return of_stack(resources, declared, configuration(args.get_config()))


def _urn(finding: Finding) -> str | None:
    return finding.place.source if finding.place.source.startswith("urn:") else None


def _schema(clause: Clause | Topic, *, whole: bool) -> PolicyConfigSchema:
    names = (*FIELDS[clause], "levels", *(("whole",) if whole else ()))
    return PolicyConfigSchema({name: schema for name, schema in _properties().items() if name in names})


def _properties() -> dict[str, dict[str, Any]]:
    """JSON schemas of the configuration's fields, references replaced: the engine takes properties only."""
    schema = Config.model_json_schema(by_alias=True)
    found = cast("dict[str, dict[str, Any]]", _inlined(schema["properties"], schema.get("$defs", {})))
    found["whole"] = {**found["whole"], "default": True}
    return found


def _inlined(value: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value)
        if "$ref" in pairs:
            return _inlined(definitions[str(pairs["$ref"]).rpartition("/")[2]], definitions)
        return {name: _inlined(child, definitions) for name, child in pairs.items()}
    if isinstance(value, list):
        return [_inlined(item, definitions) for item in cast("list[Any]", value)]
    return value


def _whole(value: Any) -> Any:
    """Numbers come as floats over the engine's protocol."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {name: _whole(child) for name, child in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_whole(item) for item in cast("list[Any]", value)]
    return value
