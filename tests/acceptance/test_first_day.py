"""Claims of docs/first-day.md that can be tried without an account."""

from __future__ import annotations

import re
import subprocess

import pytest

from srvmod.tools import ensure
from tests.docs.commands import PULUMI

pytestmark = pytest.mark.acceptance


@pytest.mark.parametrize("subcommand", sorted(PULUMI))
def test_options_of_pulumi_in_prose_are_its_own(subcommand: str) -> None:
    pulumi = ensure(["pulumi"])["pulumi"]
    helped = "".join(
        subprocess.run(
            [str(pulumi), subcommand, *more, "--help"], env={"PULUMI_EXPERIMENTAL": "true", "HOME": "/nonexistent"},
            capture_output=True, text=True, timeout=60, check=True,
        ).stdout
        for more in {"stack": [[], ["init"], ["output"], ["export"]], "config": [[], ["set"]],
                     "state": [[], ["unprotect"]]}.get(subcommand, [[]])
    )  # fmt: skip
    unknown = [option for option in PULUMI[subcommand] if not re.search(rf"{option}[ \[\n]", helped)]
    assert unknown == []
