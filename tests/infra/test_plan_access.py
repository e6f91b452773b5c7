"""What roles that preview may do in the cluster: read everything that the program declares, and change nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from srvmod.infra.render.recorder import Graph, Recorded
from tests.infra.environment import graph, settings_of

REAL = pytest.mark.parametrize("env", ["dev", "staging", "prod"])
GROUP = "srvmod-plan"
RBAC = "kubernetes:rbac.authorization.k8s.io/v1:"
RELEASE = "kubernetes:helm.sh/v3:Release"


def _resource(kind: str) -> str:
    """The resource of a kind, by the rules of English that Kubernetes follows."""
    lower = kind.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") and lower[-2] not in "aeiou" else f"{lower}s"


def _rules(recorded: Graph) -> Iterator[tuple[str | None, Mapping[str, Any]]]:
    """Rules that the group is bound to, with the namespace that they are for (None: all)."""
    for binding in (*recorded.of_type(f"{RBAC}ClusterRoleBinding"), *recorded.of_type(f"{RBAC}RoleBinding")):
        if not any(subject["name"] == GROUP for subject in binding.inputs["subjects"]):
            continue
        wanted, place = binding.inputs["roleRef"], binding.inputs["metadata"].get("namespace")
        for role in recorded.of_type(f"{RBAC}{wanted['kind']}"):
            found = role.inputs["metadata"]
            if (found["name"], found.get("namespace")) == (wanted["name"], place):
                yield from ((place, rule) for rule in role.inputs["rules"])


def _may(recorded: Graph, verb: str, group: str, resource: str, namespace: str | None) -> bool:
    return any(
        place in {None, namespace} and group in rule["apiGroups"] and resource in rule["resources"]
        and verb in rule["verbs"]
        for place, rule in _rules(recorded)
    )  # fmt: skip


def _asked(resource: Recorded) -> Iterator[tuple[str, str, str, str | None]]:
    """(verb, group, resource, namespace) that refreshing a resource asks for."""
    if resource.type == RELEASE:  # Helm finds a release by the labels of its Secrets
        yield from ((verb, "", "secrets", str(resource.inputs["namespace"])) for verb in ("get", "list"))
        return
    group, _, kind = resource.type.removeprefix("kubernetes:").partition(":")
    name = group.partition("/")[0]
    place = resource.inputs["metadata"].get("namespace")
    yield "get", "" if name == "core" else name, _resource(kind), place


@REAL
def test_everything_that_is_declared_can_be_read(env: str) -> None:
    recorded = graph(env)
    objects = [r for r in recorded.resources.values() if r.custom and r.type.startswith("kubernetes:")]
    assert len(objects) > 50
    asked = {wanted for resource in objects for wanted in _asked(resource)}
    assert [wanted for wanted in sorted(asked, key=str) if not _may(recorded, *wanted)] == []


@REAL
def test_nothing_can_be_changed(env: str) -> None:
    verbs = {verb for _, rule in _rules(graph(env)) for verb in rule["verbs"]}
    assert verbs == {"get", "list", "watch"}
    named = {name for _, rule in _rules(graph(env)) for name in (*rule["apiGroups"], *rule["resources"])}
    assert "*" not in named


@REAL
def test_secrets_only_where_the_program_has_some(env: str) -> None:
    recorded = graph(env)
    places = {place for place, rule in _rules(recorded) if "secrets" in rule["resources"]}
    releases = {str(release.inputs["namespace"]) for release in recorded.of_type(RELEASE)}
    assert places == {"serving", *releases}


@REAL
def test_plan_roles_are_of_the_group_and_have_no_policy_of_eks(env: str) -> None:
    recorded, roles = graph(env), set(settings_of(env).cluster.plan_roles)
    entries = recorded.of_type("aws:eks/accessEntry:AccessEntry")
    assert {e.inputs["principalArn"] for e in entries if e.inputs.get("kubernetesGroups") == [GROUP]} == roles
    policies = recorded.of_type("aws:eks/accessPolicyAssociation:AccessPolicyAssociation")
    assert not roles & {policy.inputs["principalArn"] for policy in policies}


def test_without_plan_roles_there_are_no_rights_for_them() -> None:
    assert list(_rules(graph("local"))) == []
