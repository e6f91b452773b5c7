"""The program's start, as Pulumi's language host runs it: the folder as a script."""

import gc
import runpy
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

INFRA = Path(__file__).parents[2] / "infra"


def test_folders_of_the_program_hide_no_module_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def program() -> None:
        for name in ("platform", "render", "aws"):
            spec = PathFinder.find_spec(name)
            if spec is not None:
                found.append(str(spec.origin))

    monkeypatch.setattr("srvmod.infra.program.program", program)
    monkeypatch.setattr(sys, "path", [*sys.path])
    try:
        runpy.run_path(str(INFRA), run_name="__main__")
    finally:
        gc.enable()
    assert found
    assert not [origin for origin in found if Path(origin).is_relative_to(INFRA)]


def test_main_stays_short() -> None:
    assert len((INFRA / "__main__.py").read_text().splitlines()) <= 12
