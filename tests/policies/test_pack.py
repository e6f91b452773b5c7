"""The pack's functions, driven with the engine's own proxies: what is declared, what is unknown, what is set."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
from pulumi_policy import (
    PolicyCustomTimeouts,
    PolicyResource,
    PolicyResourceOptions,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
)
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, unknown_checking_proxy

from srvmod.policies.config import ConfigError
from srvmod.policies.pack.policies import STACK, configuration, policies
from srvmod.policies.pack.verdicts import Declared, of_stack
from srvmod.policies.rules import Severity
from tests.policies.table import base, cases

OPTIONS = PolicyResourceOptions(False, [], None, [], PolicyCustomTimeouts(0, 0, 0), [])
Document = dict[str, Any]
Report = tuple[str, str, str | None]
"""(policy, message, URN)"""


def token(document: Document) -> str:
    return f"kubernetes:{document['apiVersion']}:{document['kind']}"


def urn(document: Document) -> str:
    return f"urn:pulumi:test::srvmod::{token(document)}::{document['metadata']['name']}"


def run(
    documents: list[Document], *, outputs: bool = True, config: dict[str, Any] | None = None, others: Any = ()
) -> list[Report]:
    """Everything that the pack says of a stack, in the engine's order: each resource, then the stack."""
    reports: list[Report] = []
    made = policies(Declared())
    resources = [(token(one), urn(one), one) for one in documents] + list(others)
    for kind, place, properties in resources:
        for policy in made:
            if isinstance(policy, ResourceValidationPolicy):
                props = unknown_checking_proxy(copy.deepcopy(properties))
                args = ResourceValidationArgs(kind, props, place, "x", OPTIONS, None, (config or {}).get(policy.name))
                policy.validate(args, lambda text, at=None, p=policy, u=place: reports.append((p.name, text, at or u)))
    seen = [
        PolicyResource(kind, unknown_checking_proxy(copy.deepcopy(properties) if outputs else {}), place, "x", OPTIONS,
                       None, None, [], {})
        for kind, place, properties in resources
    ]  # fmt: skip
    for policy in made:
        if isinstance(policy, StackValidationPolicy):
            args = StackValidationArgs(seen, (config or {}).get(policy.name))
            policy.validate(args, lambda text, at=None, p=policy: reports.append((p.name, text, at)))
    return reports


def failures(reports: list[Report]) -> list[Report]:
    return [one for one in reports if one[0] != "advice"]


def good() -> list[Document]:
    return [copy.deepcopy(one) for one in base()]


def args_of(documents: list[Document]) -> list[str]:
    return documents[0]["spec"]["template"]["spec"]["containers"][0]["args"]


def test_a_good_stack_passes_with_and_without_outputs() -> None:
    assert failures(run(good())) == []
    assert failures(run(good(), outputs=False)) == []


def test_a_first_preview_without_outputs_judges_what_is_declared() -> None:
    documents = good()
    documents[2]["spec"]["userData"] = "kind: NodeConfig\nspec: {kubelet: {config: {topologyManagerPolicy: none}}}\n"
    found = failures(run(documents, outputs=False))
    assert [(name, at) for name, _, at in found] == [(f"INV-SRVMOD-03{STACK}", urn(documents[2]))]
    assert "topologyManagerPolicy is none" in found[0][1]


def test_a_broken_engine_is_reported_once_and_on_the_resource() -> None:
    documents = good()
    args_of(documents)[2] = "--tensor-parallel-size=2"
    found = [one for one in failures(run(documents)) if "tensor_parallel_size is 2" in one[1]]
    assert [(name, at) for name, _, at in found] == [("MC-HW-01", urn(documents[0]))]
    assert "MC-HW-01/tensor-parallel: tensor_parallel_size is 2" in found[0][1]
    assert "spec.template.spec.containers[0].args[2]" in found[0][1]
    assert "fix: --tensor-parallel-size=4" in found[0][1]


def test_the_stack_misses_what_no_resource_declares() -> None:
    names = {name for name, _, _ in failures(run(good()[:1]))}
    assert names == {f"INV-SRVMOD-02{STACK}", f"INV-SRVMOD-03{STACK}"}
    part = {f"{clause}{STACK}": {"whole": False} for clause in ("INV-SRVMOD-02", "INV-SRVMOD-03")}
    assert failures(run(good()[:1], config=part)) == []


AMAZON = ("aws:amp/ruleGroupNamespace:RuleGroupNamespace", "urn:pulumi:test::srvmod::amp::rules")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ('{le="0.03"}', ""),
        ('{le="0.05"}', "speaks of 50 ms"),
        (UNKNOWN_STRING_VALUE, "no alert looks at inter-token latency"),
    ],
)
def test_amazons_rule_groups_are_read(data: str, said: str) -> None:
    """Rules for a managed Prometheus are text in a resource of AWS; while it is unknown there is no alert."""
    metric = "vllm:inter_token_latency_seconds"
    share = f"1 - sum(rate({metric}_bucket{data}[5m])) / sum(rate({metric}_count[5m])) > 0.05"
    rules = f"groups: [{{name: latency, rules: [{{alert: Itl, expr: '{share}'}}]}}]"
    text = data if data == UNKNOWN_STRING_VALUE else rules
    stack = [one for one in good() if one["kind"] != "PrometheusRule"]
    found = failures(run(stack, others=[(*AMAZON, {"name": "rules", "data": text})]))
    assert (f"INV-SRVMOD-02{STACK}" in {name for name, _, _ in found}) == bool(said)
    assert said in str(found)
    assert said or not found


def test_numbers_and_levels_come_from_the_configuration() -> None:
    documents = good()
    args_of(documents)[7] = "--max-num-seqs=64"
    assert {name for name, _, _ in failures(run(documents))} == {f"MC-CB-01{STACK}"}
    few = {f"MC-CB-01{STACK}": {"sessions": 200.0}}
    assert failures(run(documents, config=few)) == []
    off = {f"MC-CB-01{STACK}": {"levels": {"MC-CB-01/sequence-limit": "off"}}}
    assert failures(run(documents, config=off)) == []


def test_a_wrong_configuration_says_what_is_wrong() -> None:
    with pytest.raises(ConfigError, match="sessions = -1"):
        configuration({"sessions": -1.0})


@pytest.mark.parametrize("flag", ["--tensor-parallel-size", "--block-size", "--max-num-seqs", "--stream-interval"])
def test_an_unknown_flag_fails_closed(flag: str) -> None:
    documents = good()
    index = next(i for i, word in enumerate(args_of(documents)) if word.startswith(flag))
    args_of(documents)[index] = UNKNOWN_STRING_VALUE
    found = failures(run(documents, outputs=False))
    assert any("can't be told: isn't known at preview" in text for _, text, _ in found)


def paths(node: Any, prefix: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    children = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, child in children:
        yield (*prefix, key)
        yield from paths(child, (*prefix, key))


def replaced(documents: list[Document], index: int, path: tuple[Any, ...], value: Any) -> list[Document]:
    changed = copy.deepcopy(documents)
    node: Any = changed[index]
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return changed


NOT_JUDGED = {
    # no rule reads them
    ("BackendTrafficPolicy", "spec.targetRefs.0.group"),
    ("Deployment", "spec.replicas"),  # the scaler's minimum counts
    ("Deployment", "spec.selector"),
    ("Deployment", "spec.selector.matchLabels"),
    ("Deployment", "spec.selector.matchLabels.app"),
    ("Deployment", "spec.template.spec.containers.0.env.0.value"),  # HF_HUB_OFFLINE
    ("HTTPRoute", "spec.rules.0.backendRefs.0.port"),
    ("HTTPRoute", "spec.rules.0.matches.0.path.type"),
    ("NodePool", "spec.template.spec.nodeClassRef.group"),
    ("PrometheusRule", "spec.groups.0.name"),
    ("PrometheusRule", "spec.groups.0.rules.0.for"),
    ("ScaledObject", "spec.maxReplicaCount"),
    ("Service", "spec.ports"),
    ("Service", "spec.ports.0"),
    ("Service", "spec.ports.0.port"),
}
OF_OPERATIONS = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "resources", "strategy")
"""Parts of an engine whose rules are the topic OPERATIONS, not a clause: an unknown counts as Kubernetes' default."""


def test_no_unknown_passes_where_a_rule_reads() -> None:
    """Every value of a good stack in turn isn't known: silence only where nothing that any rule judges is hidden."""
    silent: set[tuple[str, str]] = set()
    documents = good()
    config = configuration(None)
    for index, document in enumerate(documents):
        for path in paths(document):
            if path[0] in {"apiVersion", "kind"} or path == ("metadata", "name"):
                continue
            declared = Declared()
            resources = [(str(n), token(one), one) for n, one in enumerate(documents)]
            hidden = replaced(documents, index, path, UNKNOWN_STRING_VALUE)[index]
            for place, kind, properties in resources:
                declared.add(place, kind, unknown_checking_proxy(hidden if place == str(index) else properties))
            result = of_stack(resources, declared, config)
            if not result.exit_code and not set(OF_OPERATIONS) & set(path):
                silent.add((document["kind"], ".".join(map(str, path))))
    assert silent == NOT_JUDGED, "\n".join(map(str, sorted(silent ^ NOT_JUDGED)))


def test_a_chart_that_brings_engines_cannot_be_judged() -> None:
    chart = ("kubernetes:helm.sh/v3:Release", "urn:chart", {"name": "serving", "chart": "vllm/vllm-stack"})
    found = failures(run(good(), others=[chart]))
    assert [name for name, _, _ in found] == [f"INV-SRVMOD-01{STACK}"]
    other = ("kubernetes:helm.sh/v3:Release", "urn:chart", {"name": "keda", "chart": "keda"})
    assert failures(run(good(), others=[other])) == []


def test_the_table_of_cases_has_the_same_verdicts() -> None:
    """What gate 1 says of objects, the pack says of the resources that declare them."""
    for case in cases():
        if "input" in case.source or "whole" in case.config:
            continue
        declared = Declared()
        resources = [(str(index), token(one), one) for index, one in enumerate(case.documents())]
        for place, kind, properties in resources:
            declared.add(place, kind, unknown_checking_proxy(properties))
        result = of_stack(resources, declared, configuration({"whole": False, **case.config}))
        failing = {one.clause for one in result.findings if one.severity in {Severity.ERROR, Severity.UNKNOWN}}
        if case.verdict in {"violation", "cant-tell"}:
            assert case.clause in failing, case.name
        elif case.verdict in {"ok", "warning"}:
            assert failing == set(), (case.name, failing)
