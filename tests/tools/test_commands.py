"""`srvmod tools` as a user types it, with a fake `go`."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from srvmod.tools import builder, catalogue, commands, paths
from srvmod.tools.catalogue import Tool

from .conftest import script

Make = Callable[..., Tool]


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch, make_tool: Make, machine: Path) -> typer.Typer:
    make_tool("one")
    make_tool("two", at_least="1.0.0")
    script(machine / "two", "#!/bin/sh\necho 1.5.0\n")
    monkeypatch.setattr(commands, "TOOLS_BY_NAME", catalogue.TOOLS_BY_NAME)
    monkeypatch.setattr(commands, "LOCAL_STACK", ("one", "two"))
    app = typer.Typer()
    app.command()(commands.tools)
    return app


def test_list_builds_nothing(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["--list", "--json"])
    assert result.exit_code == 0
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["one"] | {"purpose": ""} == {
        "name": "one",
        "version": "1.2.3",
        "source": "missing",
        "path": None,
        "seconds": None,
        "purpose": "",
    }
    assert rows["two"]["source"] == "path"
    assert not paths.BIN.exists()


def test_builds_what_is_missing_and_says_so(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["--json"])
    assert result.exit_code == 0
    assert "one 1.2.3: building" in result.stderr
    (one, two) = json.loads(result.stdout)
    assert (one["source"], one["path"]) == ("built", str(paths.BIN / "one"))
    assert one["seconds"] >= 0
    assert two["source"] == "path"


def test_table_for_people(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["one"])
    assert result.exit_code == 0
    assert "built" in result.stdout
    assert "two" not in result.stdout


def test_error_has_a_fix_and_no_traceback(app: typer.Typer) -> None:
    result = CliRunner().invoke(app, ["thre"])
    assert result.exit_code == 1
    assert "no tool is called 'thre'" in result.stderr
    assert "fix: allowed: one, two" in result.stderr
    assert "Traceback" not in result.stderr


def test_ctrl_c_is_130(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(builder, "ensure", interrupted)
    result = CliRunner().invoke(app, ["one"])
    assert result.exit_code == 130
    assert "run the same again" in result.stderr
