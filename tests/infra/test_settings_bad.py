"""Every bad configuration is refused, and its one problem names key, value, what is allowed, and the place."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from srvmod.infra.settings import Settings, SettingsError, load, load_stack_file, rules
from srvmod.infra.settings.rules import RULES
from srvmod.infra.settings.rules.finding import Finding, Rule
from tests.infra.bad_configs.base import Case, changed, write
from tests.infra.bad_configs.cases import CASES

SEVERAL = {"section missing"}
"""Cases with more than one mistake."""


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_problem_names_key_value_allowed_and_place(case: Case, tmp_path: Path) -> None:
    file = write(changed(case.changes), tmp_path, case.stack)
    with pytest.raises(SettingsError) as caught:
        load_stack_file(file)
    problem = caught.value.problems[0]
    keys = {problem.key for problem in caught.value.problems}
    # A mistake must not drag others along: people would look for what isn't there.
    assert keys == {case.key} or case.name in SEVERAL, str(caught.value)
    assert problem.key == case.key
    assert case.value in problem.value
    assert case.allowed in f"{problem.allowed} {problem.problem}"
    assert file.name in problem.place
    _assert_line(problem.place, file, case)


def _assert_line(place: str, file: Path, case: Case) -> None:
    """The line that the place names holds the key, or what the case says instead."""
    expected = re.sub(r"\[\d+\]", "", case.key.removeprefix("srvmod:").rpartition(".")[2])
    expected = expected if case.line is None else case.line
    if not expected:
        assert "line" not in place
        return
    number = re.search(r"line (\d+)$", place)
    assert number, place
    assert expected in file.read_text(encoding="utf-8").splitlines()[int(number[1]) - 1]


def test_there_are_at_least_thirty_and_names_differ() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 30


def test_every_rule_is_broken_by_a_case(monkeypatch: pytest.MonkeyPatch) -> None:
    broken: set[str] = set()

    def noting(rule: Rule) -> Rule:
        def noted(settings: Settings) -> Iterator[Finding]:
            for finding in rule(settings):
                broken.add(rule.__name__)
                yield finding

        return noted

    monkeypatch.setattr(rules, "RULES", tuple(noting(rule) for rule in RULES))
    for case in CASES:
        with pytest.raises(SettingsError):
            load(changed(case.changes), stack=case.stack)
    assert {rule.__name__ for rule in RULES} == broken


def test_all_problems_of_a_file_at_once(tmp_path: Path) -> None:
    """Types, unknown keys, missing keys and rules over several settings are reported together."""
    config = changed(
        {
            "aws.accountId": 1,
            "network.cidr": "172.20.0.0/16",
            "pool.zones": ["us-east-1a", "us-east-1f"],
            "model.revison": "x",
            "traffic.sessions": 0,
            "engine.tensorParallelSize": 8,
            "engine.shutdownTimeoutSeconds": 3,
            "gateway.replicas": 1,
            "clutser": {},
        }
    )
    with pytest.raises(SettingsError) as caught:
        load_stack_file(write(config, tmp_path))
    assert [problem.key for problem in caught.value.problems] == [
        "srvmod:aws.accountId",
        "srvmod:network.cidr",
        "srvmod:pool.zones[1]",
        "srvmod:model.revison",
        "srvmod:traffic.sessions",
        "srvmod:engine.tensorParallelSize",
        "srvmod:engine.shutdownTimeoutSeconds",
        "srvmod:gateway.replicas",
        "srvmod:clutser",
    ]
    text = str(caught.value)
    assert "9 problems" in text
    assert "did you mean 'revision'?" in text
    assert "did you mean 'cluster'?" in text
