"""The change test's table is whole; the previews themselves are tests/acceptance/test_changes.py."""

from __future__ import annotations

from tests.acceptance.changes import CHARTS, FIXED, MUTABLE, REPLACING, settings_paths


def test_every_setting_has_a_case() -> None:
    """A new setting needs one: what does changing it do to a running stack?"""
    cases = [case.path for case in (*MUTABLE, *REPLACING)] + [*FIXED, *CHARTS]
    assert len(cases) == len(set(cases))
    assert set(cases) == set(settings_paths())


def test_every_replacement_has_a_reason() -> None:
    assert all(case.reason for case in (*MUTABLE, *REPLACING) if case.replaces)
    assert all(case.replaces for case in REPLACING)
