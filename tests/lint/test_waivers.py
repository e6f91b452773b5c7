"""Waivers say why; the tools themselves run with `python -m tests.lint` (minutes, and a package registry)."""

import pytest

from srvmod.infra.waivers import CHECKOV, KUBE_SCORE, PARLIAMENT, WAIVERS, Waiver
from tests.lint.__main__ import Finding, judge


@pytest.mark.parametrize("waiver", WAIVERS, ids=lambda waiver: f"{waiver.check}-{waiver.where[0]}")
def test_a_waiver_has_a_place_and_a_reason(waiver: Waiver) -> None:
    assert waiver.tool in {CHECKOV, KUBE_SCORE, PARLIAMENT}
    assert waiver.where
    assert all(len(part) > 3 for part in waiver.where)
    assert len(waiver.reason) > 20 or "as above" in waiver.reason


def test_findings_and_waivers_must_meet() -> None:
    first = WAIVERS[0]
    waived = Finding(first.tool, first.check, "", first.where[0], "prod")
    elsewhere = Finding(first.tool, first.check, "", "another", "prod")
    open_ones, idle = judge([waived, elsewhere])
    assert open_ones == [elsewhere]
    assert first not in idle
    assert len(idle) == len(WAIVERS) - 1
