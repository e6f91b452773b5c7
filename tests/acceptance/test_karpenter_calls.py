"""What the running Karpenter asks AWS for is what its policies are tested with (tests/infra/test_iam_karpenter.py)."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from tests.acceptance.conftest import Stack

CALLS = json.loads((Path(__file__).parents[1] / "infra" / "karpenter_calls.json").read_text())


def recorded(stack: Stack) -> set[str]:
    """Calls that simulated AWS got from Karpenter, as `service:Operation`."""
    with urllib.request.urlopen(f"{stack.env()['AWS_ENDPOINT_URL']}/_srvmod/calls", timeout=20) as answer:
        calls = json.load(answer)
    return {f"{call['service']}:{call['operation']}" for call in calls if "karpenter" in call["agent"]}


def test_every_call_of_the_controller_is_in_the_list(stack: Stack) -> None:
    found = recorded(stack)
    assert len(found) > 10
    unknown = found - set(CALLS["recorded"]) - set(CALLS["seldom"])
    assert not unknown, f"judge these in tests/infra/karpenter_calls.json: {sorted(unknown)}"


def test_the_list_names_no_call_that_the_controller_does_not_make(stack: Stack) -> None:
    missing = set(CALLS["recorded"]) - recorded(stack)
    assert not missing, f"not asked for in this run: {sorted(missing)}"
