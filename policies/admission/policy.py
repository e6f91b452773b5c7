"""A ValidatingAdmissionPolicy: expressions beside the clause and rule that they implement."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srvmod.contract import Clause
from srvmod.policies.rules import Topic

PREFIX = "srvmod-"
MOST_MESSAGE = 900
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Validation:
    """An expression that must be true, and what is said where it isn't. `found` is a CEL text of the value found."""

    clause: Clause | Topic
    rule: str
    expression: str
    what: str
    fix: str
    found: str = ""

    def document(self) -> Document:
        """The API's form. The message starts with clause and rule, as in every gate."""
        told = f"{self.clause.value}/{self.rule}: {self.what}"
        end = f"; fix: {self.fix}"
        one: Document = {"expression": self.expression, "message": told + end, "reason": "Forbidden"}
        if self.found:
            one["messageExpression"] = f"{text(told + ': ')} + {self.found} + {text(end)}"
        return one


@dataclass(frozen=True, slots=True)
class Resource:
    """What a policy looks at."""

    group: str
    version: str
    names: tuple[str, ...]
    operations: tuple[str, ...] = ("CREATE", "UPDATE")

    def document(self) -> Document:
        """The API's form."""
        return {
            "apiGroups": [self.group],
            "apiVersions": [self.version],
            "operations": list(self.operations),
            "resources": list(self.names),
        }


@dataclass(frozen=True, slots=True)
class Policy:
    """One policy; whoever deploys it binds it to namespaces. Variables see those before them."""

    name: str
    about: str
    resources: tuple[Resource, ...]
    variables: Mapping[str, str]
    validations: Sequence[Validation]
    conditions: Mapping[str, str] | None = None
    scope: str = "serving"
    """`serving`: bound to serving namespaces; `cluster`: to every object it matches; `served`: to serving namespaces of
    environments that serve people."""
    excluded: tuple[Resource, ...] = ()
    namespaced: bool = False
    """Only objects in namespaces: a binding's namespaces never keep a policy from objects that have none."""

    def document(self) -> Document:
        """The object."""
        spec: Document = {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [one.document() for one in self.resources]},
            "variables": [{"name": name, "expression": one} for name, one in self.variables.items()],
            "validations": [one.document() for one in self.validations],
        }
        if self.excluded:
            spec["matchConstraints"]["excludeResourceRules"] = [one.document() for one in self.excluded]
        if self.namespaced:
            for rule in spec["matchConstraints"]["resourceRules"]:
                rule["scope"] = "Namespaced"
        if self.conditions:
            spec["matchConditions"] = [{"name": name, "expression": one} for name, one in self.conditions.items()]
        return {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {
                "name": f"{PREFIX}{self.name}",
                "annotations": {"srvmod.dev/about": self.about, "srvmod.dev/scope": self.scope},
                "labels": {"app.kubernetes.io/name": f"{PREFIX}{self.name}", "app.kubernetes.io/part-of": "srvmod"},
            },
            "spec": spec,
        }


def text(value: str) -> str:
    """A CEL string."""
    return json.dumps(value, ensure_ascii=False)


def texts(values: Sequence[str]) -> str:
    """A CEL list of strings."""
    return "[" + ", ".join(text(one) for one in values) + "]"


def list_of(parent: str, field: str) -> str:
    """A list field, empty where it isn't there."""
    return f"(has({parent}.{field}) ? {parent}.{field} : [])"


def map_of(parent: str, field: str) -> str:
    """A map field, empty where it isn't there."""
    return f"(has({parent}.{field}) ? {parent}.{field} : {{}})"
