"""Admission policies and their bindings.

The policies' texts are `manifests/admission/`, which `srvmod admission render` writes from the rules themselves; here
they are bound to the namespaces of this stack. Each says in an annotation what it is bound to.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from srvmod.infra.labels import NAMESPACE_LABEL, PREFIX, Object, labels

FOLDER = Path(__file__).resolve().parents[3] / "manifests" / "admission"
SCOPE = f"{PREFIX}scope"


@dataclass(frozen=True)
class Admission:
    """`namespaces` hold engines. `simulated`: machines are pretended, so engines may be too."""

    namespaces: Sequence[str]
    simulated: bool


def policies() -> list[Object]:
    """The policies, as they were rendered."""
    # The C parser where PyYAML has it: a hundred kilobytes take the other one seconds.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [yaml.load(path.read_text(encoding="utf-8"), Loader=loader) for path in sorted(FOLDER.glob("*.yaml"))]


def bound(admission: Admission) -> Iterator[tuple[Object, Object]]:
    """Each policy of this stack with its binding. A stack with simulated machines leaves out the ban on simulations."""
    for policy in policies():
        scope = policy["metadata"]["annotations"][SCOPE]
        if scope == "served" and admission.simulated:
            continue
        yield policy, binding(policy["metadata"]["name"], None if scope == "cluster" else admission.namespaces)


def binding(policy: str, namespaces: Sequence[str] | None) -> Object:
    """Denies what a policy finds, in these namespaces or (None) everywhere; by the name that nobody can take off."""
    spec: Object = {"policyName": policy, "validationActions": ["Deny", "Audit"]}
    if namespaces is not None:
        chosen = [{"key": NAMESPACE_LABEL, "operator": "In", "values": list(namespaces)}]
        spec["matchResources"] = {"namespaceSelector": {"matchExpressions": chosen}}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": policy, "labels": labels(policy)},
        "spec": spec,
    }
