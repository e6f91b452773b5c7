"""What controllers wait for: the API server's answers as it gives them, also in the first moment of a CRD."""

from __future__ import annotations

from typing import Any, cast

import pytest

from srvmod.local.api import Api
from srvmod.local.waiting import crd_established


class Answering:
    """An API server with one answer."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self.answer = answer

    def get(self, path: str) -> dict[str, Any]:
        assert path.endswith("/customresourcedefinitions/x.example")
        return self.answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({}, False),
        ({"status": {"conditions": None, "storedVersions": ["v1"]}}, False),
        ({"status": {"conditions": []}}, False),
        ({"status": {"conditions": [{"type": "Established", "status": "False"}]}}, False),
        ({"status": {"conditions": [{"type": "Established", "status": "True"}]}}, True),
    ],
)
def test_a_crd_is_established_when_it_says_so(answer: dict[str, Any], expected: bool) -> None:
    assert crd_established(cast("Api", Answering(answer)), "x.example") is expected
