"""The admission policies as documents: fresh files, complete messages, and bindings that leave nothing open."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from srvmod.contract import Clause
from srvmod.infra.labels import SERVING, WEIGHT_CACHE, WEIGHTS_COLD_TAINT
from srvmod.infra.platform.documents import admission as bindings
from srvmod.policies.admission import weight_cache
from srvmod.policies.admission.commands import FOLDER, ROOT, app
from srvmod.policies.admission.documents import files, policies
from srvmod.policies.admission.policy import Policy, text
from srvmod.policies.config import from_values
from srvmod.policies.rules import Topic

ALL = policies()
KNOWN = {clause.value for clause in (*Clause, *Topic)}


def test_the_committed_files_are_what_the_rules_render() -> None:
    there = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / FOLDER).glob("*.yaml")}
    assert there == files(), "run: srvmod admission render"


def test_check_names_a_stale_file(tmp_path: Path) -> None:
    runner = CliRunner()
    assert runner.invoke(app, ["render", "--folder", str(tmp_path)]).exit_code == 0
    assert runner.invoke(app, ["render", "--check", "--folder", str(tmp_path)]).exit_code == 0
    (tmp_path / "groups.yaml").write_text("kind: Else\n")
    (tmp_path / "left-over.yaml").write_text("kind: Else\n")
    result = runner.invoke(app, ["render", "--check", "--folder", str(tmp_path)])
    assert result.exit_code == 1
    assert "groups.yaml" in result.output
    assert "left-over.yaml" in result.output


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_a_policy_fails_closed_and_says_what_to_do(policy: Policy) -> None:
    document = policy.document()
    assert document["spec"]["failurePolicy"] == "Fail"
    for one in document["spec"]["validations"]:
        clause, _, rest = one["message"].partition("/")
        assert clause in KNOWN, one["message"]
        assert "; fix: " in rest
        assert len(one["message"]) < 900
        if "messageExpression" in one:
            assert one["messageExpression"].startswith(f'"{clause}/')


def test_every_enforced_clause_has_a_validation() -> None:
    told = {one.clause for policy in ALL for one in policy.validations}
    assert {clause for clause in Clause if clause.enforced} <= told
    assert set(Topic) <= told


def test_variables_are_defined_before_they_are_used() -> None:
    for policy in ALL:
        seen: set[str] = set()
        for name, expression in policy.variables.items():
            used = {part.split(".")[0].split(" ")[0] for part in expression.split("variables.")[1:]}
            names = {"".join(c for c in one if c.isalnum()) for one in (u.split("[")[0].split(")")[0] for u in used)}
            assert all(any(known == one or one.startswith(known) for known in seen) for one in names), (
                name,
                names - seen,
            )
            seen.add(name)


def test_numbers_follow_the_configuration() -> None:
    few = {one.name: one for one in policies(from_values({"sessions": 7}, "test"))}
    assert few["engines"].variables["sessions"].endswith(": 7")


def test_texts_survive_cel() -> None:
    assert text('a "b" \\ c\n') == '"a \\"b\\" \\\\ c\\n"'


def test_the_account_is_the_programs() -> None:
    assert (weight_cache.NAMESPACE, weight_cache.ACCOUNT, weight_cache.COLD) == (
        SERVING,
        WEIGHT_CACHE,
        WEIGHTS_COLD_TAINT,
    )


@pytest.mark.parametrize("simulated", [False, True])
def test_everything_is_bound_to_namespaces_by_name(simulated: bool) -> None:
    pairs = list(bindings.bound(bindings.Admission([SERVING], simulated=simulated)))
    names = {policy["metadata"]["name"] for policy, _ in pairs}
    expected = {f"srvmod-{one.name}" for one in ALL}
    assert names == (expected - {"srvmod-no-simulation"} if simulated else expected)
    for policy, binding in pairs:
        assert binding["spec"]["policyName"] == policy["metadata"]["name"]
        assert "Deny" in binding["spec"]["validationActions"]
        scope = policy["metadata"]["annotations"]["srvmod.dev/scope"]
        assert ("matchResources" in binding["spec"]) == (scope != "cluster")
        if scope != "cluster":
            (rule,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
            assert rule == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [SERVING]}


@pytest.mark.parametrize("env", ["dev", "staging", "prod", "local"])
def test_only_the_simulated_environment_may_simulate(env: str) -> None:
    folder = ROOT / "manifests" / env / "cluster"
    bound = {yaml.safe_load(path.read_text())["spec"]["policyName"] for path in folder.glob("*policybinding-*.yaml")}
    assert ("srvmod-no-simulation" in bound) == (env != "local")
    assert "srvmod-engines" in bound
