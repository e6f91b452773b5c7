"""Gate 3 beside gate 1: the table of cases on a real API server, and each clause broken on purpose at every gate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from srvmod.policies.config import from_values
from srvmod.policies.readers.world import of_text
from srvmod.policies.rules import Severity, judge
from tests.acceptance.differences import STRICTER, UNSEEN
from tests.acceptance.door import SERVING, TOLD, Document, Door, opened
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
            unexplained.append(f"{case.file}: {case.name}: {case.verdict} {case.clause}: {sorted(told - STRICTER.keys())}")
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


BROKEN: dict[str, tuple[str, str, Any]] = {
    "MC-HW-01": ("Deployment", "args", "--tensor-parallel-size=8"),
    "MC-KV-01": ("Deployment", "args", "--block-size=32"),
    "MC-CB-01": ("Deployment", "args", "--no-enable-chunked-prefill"),
    "MC-SE-01": ("Deployment", "args", "--stream-interval=8"),
    "INV-SRVMOD-01": ("Deployment", "args", "--max-num-seqs=1"),
    "INV-SRVMOD-02": ("Deployment", "args", "--enforce-eager"),
    "INV-SRVMOD-03": ("Deployment", "args", "--nnodes=2"),
}


@pytest.mark.parametrize("clause", BROKEN)
def test_each_clause_is_denied_with_its_id(door: Door, clause: str) -> None:
    engine = json.loads(json.dumps(base()[0]))
    args = engine["spec"]["template"]["spec"]["containers"][0]["args"]
    word = BROKEN[clause][2]
    args[:] = [one for one in args if one.partition("=")[0] != word.partition("=")[0]] + [word]
    answer = door.ask(engine, SERVING)
    assert answer.status == 403, answer
    told = door.ask(engine, TOLD)
    assert clause in told.clauses, told
    assert "fix: " in answer.message


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
    template["spec"]["containers"][0] |= {"image": "docker.io/srvmod/engine:local", "command": ["python3", "-m", "srvmod_engine"]}
    answer = door.ask(engine, SERVING)
    assert answer.status == 403
    assert "INV-SRVMOD-01/simulated-engine" in answer.message
    assert door.ask(engine).told == {"INV-SRVMOD-01/simulated-engine"}


def test_expressions_are_well_typed(door: Door) -> None:
    """Policies that the API server finds wrong in themselves deny for the wrong reason."""
    status, text, _ = door.call("GET", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies")
    assert status == 200
    found = {one["metadata"]["name"] for one in json.loads(text)["items"]}
    assert len([name for name in found if name.startswith("srvmod-")]) == 8
    assert "expression" not in door.ask(base()[0]).message
