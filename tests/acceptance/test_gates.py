"""Gate 3 beside gate 1: the table of cases on a real API server, and each clause broken on purpose at every gate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from srvmod.infra.labels import SERVING as NAMESPACE
from srvmod.infra.labels import WEIGHT_CACHE, WEIGHTS_COLD_TAINT
from srvmod.infra.serving.documents import weight_cache as cache_documents
from srvmod.policies.admission import weight_cache as cache_policy
from srvmod.policies.admission.documents import policies
from srvmod.policies.config import from_values
from srvmod.policies.readers.world import of_text
from srvmod.policies.rules import Severity, judge
from tests.acceptance.differences import STRICTER, UNSEEN
from tests.acceptance.door import SERVING, TOLD, Document, Door, opened
from tests.policies.broken import BROKEN, engine
from tests.policies.table import BAD, Case, base, cases

pytestmark = pytest.mark.acceptance
BY_API_SERVER = {400, 413, 422}
"""The API server's own refusal of what isn't an object of the kind."""
MOST_CHARACTERS = 200_000


@pytest.fixture(scope="module")
def door(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    with opened(tmp_path_factory.mktemp("door")) as found:
        yield found


def objects(case: Case) -> list[Document] | None:
    """The objects of a case, lists unpacked; None where the input isn't objects as an API server gets them."""
    if case.verdict == "cant-read" or len(case.text) > MOST_CHARACTERS:
        return None
    try:
        documents: list[Any] = [one for one in yaml.safe_load_all(case.text) if one is not None]
        if len(json.dumps(documents)) > MOST_CHARACTERS:
            return None
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return None
    flat: list[Document] = []
    for one in documents:
        items = one if isinstance(one, list) else one.get("items", [one]) if isinstance(one, dict) else []
        flat += [item for item in items if isinstance(item, dict) and {"kind", "apiVersion"} <= item.keys()]
    return flat or None


def asked(door: Door, case: Case) -> tuple[set[str], bool] | None:
    """(clause/rule of everything that policies found, whether the API server itself refused an object)."""
    found = objects(case)
    if found is None:
        return None
    told: set[str] = set()
    refused = False
    for document in found:
        answer = door.ask(document)
        told |= answer.told
        refused |= answer.status in BY_API_SERVER and not answer.told
    return told, refused


def test_the_table_has_the_same_verdicts_or_a_reason(door: Door) -> None:
    unexplained: list[str] = []
    judged, equal = 0, 0
    seen_reasons: set[str] = set()
    for case in cases():
        result = asked(door, case)
        if result is None:
            continue
        judged += 1
        told, refused = result
        clauses = {one.partition("/")[0] for one in told}
        same = case.clause in clauses if case.verdict in BAD else not told
        if same or (refused and not told):
            equal += 1
        elif case.verdict in BAD and not told:
            seen_reasons.add(case.name)
            if case.name not in UNSEEN:
                unexplained.append(f"MORE LENIENT {case.file}: {case.name}: {case.verdict} {case.clause}/{case.rule}")
        elif not told <= STRICTER.keys():
            unexplained.append(
                f"{case.file}: {case.name}: {case.verdict} {case.clause}: {sorted(told - STRICTER.keys())}"
            )
    assert not unexplained, "\n".join(unexplained)
    assert not UNSEEN.keys() - seen_reasons, f"no difference any more: {UNSEEN.keys() - seen_reasons}"
    assert judged >= 150
    assert equal / judged >= 0.6, f"{equal} of {judged} cases have equal verdicts"


def test_gate_one_explains_every_denial(door: Door) -> None:
    """Where gate 1 finds errors in an engine that is a plain list, admission names the same clauses."""
    for case in cases():
        if "flags" not in case.source or case.verdict != "violation" or case.config:
            continue
        answer = door.ask(case.documents()[0])
        expected = {
            one.clause.value
            for one in judge(of_text(case.text, "case.yaml"), from_values(case.config, "case"))
            if one.severity is Severity.ERROR and one.place.object.startswith("Deployment ")
        }
        missing = expected - answer.clauses
        assert not missing or case.name in UNSEEN or answer.told <= STRICTER.keys(), (case.name, missing, answer.told)


@pytest.mark.parametrize("clause", sorted(BROKEN))
def test_each_clause_broken_in_the_program_is_denied_with_its_id(door: Door, clause: str) -> None:
    assert not door.ask(engine("prod")).told
    broken = engine("prod", clause)
    answer = door.ask(broken, SERVING)
    assert answer.status == 403, answer
    assert "fix: " in answer.message
    told = door.ask(broken, TOLD)
    assert clause in told.clauses, told


def test_a_good_engine_and_what_surrounds_it_is_taken(door: Door) -> None:
    for document in base():
        answer = door.ask(document, SERVING)
        assert answer.status in {201, 404}, answer
        assert not door.ask(document).told, document["kind"]


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
def test_the_rendered_manifests_pass(door: Door, env: str) -> None:
    from tests.infra.environment import ROOT

    asked_of = 0
    for path in sorted((ROOT / "manifests" / env).rglob("*.yaml")):
        document = yaml.safe_load(path.read_text())
        if not isinstance(document, dict) or "kind" not in document or "charts" in path.parts:
            continue
        if document["kind"].startswith("ValidatingAdmissionPolicy"):
            continue
        answer = door.ask(document)
        asked_of += 1
        assert not answer.told, (path.name, answer)
    assert asked_of > 15


def test_a_simulation_is_refused_where_people_are_served(door: Door) -> None:
    engine = json.loads(json.dumps(base()[0]))
    template = engine["spec"]["template"]
    template["metadata"]["labels"]["srvmod.dev/engine"] = "simulated"
    template["spec"]["containers"][0] |= {
        "image": "docker.io/srvmod/engine:local",
        "command": ["python3", "-m", "srvmod_engine"],
    }
    answer = door.ask(engine, SERVING)
    assert answer.status == 403
    assert "INV-SRVMOD-01/simulated-engine" in answer.message
    assert door.ask(engine).told == {"INV-SRVMOD-01/simulated-engine"}


def test_expressions_are_well_typed(door: Door) -> None:
    """Policies that the API server finds wrong in themselves deny for the wrong reason."""
    status, text, _ = door.call("GET", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")
    assert status == 200
    found = {one["metadata"]["name"] for one in json.loads(text)["items"]}
    assert {name for name in found if name.startswith("srvmod-")} == {f"srvmod-{one.name}" for one in policies()}
    assert "expression" not in door.ask(base()[0]).message


NODE, OTHER = "own-node", "other-node"
COST = "controller.kubernetes.io/pod-deletion-cost"
COLD = {"key": WEIGHTS_COLD_TAINT, "value": "true", "effect": "NoSchedule"}
TP4 = {"key": "srvmod.dev/tp4", "value": "true", "effect": "NoSchedule"}


@pytest.fixture(scope="module")
def cache(door: Door) -> Door:
    """The weight cache's roles, two nodes and a pod on each."""
    given = cache_documents.WeightCache(
        NAMESPACE, "p5-tp4", "image", "Never", "bucket", "prefix", "r1", "us-east-1", ("config.json",)
    )
    door.make(cache_documents.cluster_role())
    for document in (
        cache_documents.service_account,
        cache_documents.cluster_role_binding,
        cache_documents.role,
        cache_documents.role_binding,
    ):
        door.make(document(given), NAMESPACE)
    for name in (NODE, OTHER):
        door.make({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {"a": "b"}},
                   "spec": {"taints": [COLD, TP4]}})  # fmt: skip
        door.make({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"on-{name}", "labels": {"a": "b"}},
                   "spec": {"nodeName": name, "containers": [{"name": "c", "image": "i"}]}})  # fmt: skip
    return door


def as_cache(door: Door, path: str, patch: Document, node: str | None = NODE) -> tuple[int, str]:
    """A dry run of a change by the cache's account, as the API server knows a pod's token."""
    who = {
        "Impersonate-User": f"system:serviceaccount:{NAMESPACE}:{WEIGHT_CACHE}",
        "Impersonate-Group": "system:authenticated",
    }
    if node is not None:
        who["Impersonate-Extra-authentication.kubernetes.io%2Fnode-name"] = node
    status, message, _ = door.call("PATCH", f"{path}?dryRun=All", patch, **who)
    return status, message


def test_the_policy_speaks_of_the_account_that_the_program_makes() -> None:
    assert (cache_policy.NAMESPACE, cache_policy.ACCOUNT, cache_policy.COLD) == (
        NAMESPACE,
        WEIGHT_CACHE,
        WEIGHTS_COLD_TAINT,
    )


@pytest.mark.parametrize(
    ("patch", "allowed"),
    [
        ({"metadata": {"annotations": {COST: "-12"}}}, True),
        ({"metadata": {"annotations": {"other": "1"}}}, False),
        ({"metadata": {"labels": {"app": "stolen"}}}, False),
        ({"metadata": {"labels": {"a": None}}}, False),
        ({"metadata": {"finalizers": ["srvmod.dev/stay"]}}, False),
        ({"spec": {"activeDeadlineSeconds": 60}}, False),
    ],
)
def test_of_pods_the_cache_changes_the_deletion_cost(cache: Door, patch: Document, allowed: bool) -> None:
    status, message = as_cache(cache, f"/api/v1/namespaces/{NAMESPACE}/pods/on-{NODE}", patch)
    assert (status == 200) == allowed, message
    assert allowed or "OPERATIONS/weight-cache" in message, message


@pytest.mark.parametrize(
    ("patch", "allowed"),
    [
        ({"spec": {"taints": [TP4]}}, True),
        ({"spec": {"taints": [COLD]}}, False),
        ({"spec": {"taints": []}}, False),
        ({"spec": {"taints": [TP4, {"key": "mine", "effect": "NoExecute"}]}}, False),
        ({"spec": {"unschedulable": True}}, False),
        ({"metadata": {"labels": {"node-role.kubernetes.io/control-plane": ""}}}, False),
        ({"metadata": {"annotations": {"x": "y"}}}, False),
    ],
)
def test_of_nodes_the_cache_removes_the_startup_taint(cache: Door, patch: Document, allowed: bool) -> None:
    if taints := patch["spec"].get("taints") if "spec" in patch else None:
        patch = {"spec": {"taints": [*taints, *others(cache)]}}
    status, message = as_cache(cache, f"/api/v1/nodes/{NODE}", patch)
    assert (status == 200) == allowed, message
    assert allowed or "OPERATIONS/weight-cache" in message, message


def others(door: Door) -> list[Document]:
    """Taints that the node has got beside ours: nobody tells the API server that it is well."""
    _, body, _ = door.call("GET", f"/api/v1/nodes/{NODE}")
    return [
        taint for taint in json.loads(body)["spec"].get("taints", []) if taint["key"] not in {COLD["key"], TP4["key"]}
    ]


@pytest.mark.parametrize("node", [OTHER, None])
def test_the_cache_stays_on_its_own_node(cache: Door, node: str | None) -> None:
    for path, patch in (
        (f"/api/v1/nodes/{NODE}", {"spec": {"taints": [TP4]}}),
        (f"/api/v1/namespaces/{NAMESPACE}/pods/on-{NODE}", {"metadata": {"annotations": {COST: "1"}}}),
    ):
        status, message = as_cache(cache, path, patch, node)
        assert status == 403, message
        assert "another" in message
