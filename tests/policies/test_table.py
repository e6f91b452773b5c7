"""Every row of the table gets its verdict, and the table is what it promises to be."""

from __future__ import annotations

from collections import Counter
from datetime import date
from functools import cache

import pytest

from srvmod.policies.check import OK, UNREADABLE, VIOLATIONS, Result, judged
from srvmod.policies.config import Config, from_values
from srvmod.policies.facts import World
from srvmod.policies.readers.world import of_text
from srvmod.policies.rules import RULES, Finding, Rule, Severity
from tests.policies.table import BAD, Case, cases

TODAY = date(2026, 12, 1)


@cache
def read(name: str) -> tuple[World, Config]:
    """Facts of a row; every test judges the same ones."""
    case = next(row for row in cases() if row.name == name)
    config = from_values(case.config, "case")
    return of_text(case.text, "case.yaml", config.engine_version), config


@cache
def run(case_name: str, without: Rule | None = None) -> Result:
    """The check of a row, with every rule but one."""
    world, config = read(case_name)
    return judged(world, config, TODAY, tuple(rule for rule in RULES if rule is not without))


def about(case: Case, result: Result, severity: Severity) -> list[Finding]:
    return [
        one for one in result.of(severity) if one.clause == case.clause and (not case.rule or one.rule == case.rule)
    ]


def verdict_holds(case: Case, result: Result) -> bool:
    """Whether a result is what the row says."""
    errors = about(case, result, Severity.ERROR)
    unknowns = about(case, result, Severity.UNKNOWN)
    if case.verdict == "violation":
        return bool(errors) and result.exit_code == VIOLATIONS
    if case.verdict == "cant-tell":
        return bool(unknowns) and not errors and result.exit_code != OK
    if case.verdict == "cant-read":
        return bool(result.unread) and result.exit_code in {UNREADABLE, VIOLATIONS}
    if case.verdict == "warning":
        return bool(about(case, result, Severity.WARNING)) and result.exit_code == OK
    # A good input is good as a whole, so that a rule that shouts at everything is noticed.
    return not errors and not unknowns and result.exit_code == OK


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.file}: {case.name}")
def test_case(case: Case) -> None:
    result = run(case.name)
    shown = "\n".join(f"{f.severity} {f.clause} {f.rule} {f.place}: {f.what}" for f in result.findings)
    shown += "".join(f"\nunread {u.place}: {u.why}" for u in result.unread)
    assert verdict_holds(case, result), f"{case.verdict} {case.clause} {case.rule}: {case.reason}\n{shown}\n{case.text}"


def test_findings_have_a_line_and_say_what_to_do() -> None:
    for case in cases():
        for finding in run(case.name).findings:
            assert finding.place.line is not None, (case.name, finding)
            assert finding.what, case.name
            assert finding.why, case.name
            assert finding.fix or finding.severity is Severity.NOTE, (case.name, finding)


def test_the_table_is_large_and_half_bad() -> None:
    rows = cases()
    bad = [row for row in rows if row.verdict in BAD]
    assert len(rows) >= 150
    assert 0.4 <= len(bad) / len(rows) <= 0.6
    assert not [name for name, count in Counter(row.name for row in rows).items() if count > 1]


def test_every_rule_has_a_caught_case_and_a_near_miss() -> None:
    found: set[tuple[str, str]] = set()
    for row in cases():
        for finding in run(row.name).findings:
            if finding.severity is not Severity.NOTE:
                found.add((finding.clause.value, finding.rule))
    named_bad = {(row.clause, row.rule) for row in cases() if row.verdict != "ok"}
    named_good = {(row.clause, row.rule) for row in cases() if row.verdict == "ok"}
    assert found - {("OPERATIONS", "waiver")} <= named_bad, sorted(found - named_bad)
    assert found <= named_good | {("OPERATIONS", "waiver")}, sorted(found - named_good)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.__module__.rpartition('.')[2]}.{rule.__name__}")
def test_without_a_rule_the_table_fails(rule) -> None:
    relevant = (case for case in cases() if case.verdict != "ok" and any(True for _ in rule(*read(case.name))))
    assert any(not verdict_holds(case, run(case.name, rule)) for case in relevant), f"no row needs {rule.__name__}"
