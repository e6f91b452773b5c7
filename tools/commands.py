"""`srvmod tools`: which tools there are, where they come from, and building what is missing."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from srvmod.tools import builder, stamps
from srvmod.tools.catalogue import LOCAL_STACK, TOOLS_BY_NAME, Tool, select
from srvmod.tools.errors import ToolError


@dataclass(frozen=True, slots=True)
class Row:
    """One tool as the command shows it; `seconds` is how long its build took, if it was built here."""

    name: str
    version: str
    source: str  # "built", "path" or "missing"
    path: str | None
    seconds: float | None
    purpose: str


def row(tool: Tool) -> Row:
    """What is true of `tool` now; nothing is built."""
    found = builder.locate(tool)
    record = stamps.read(tool) if found and found[1] == "built" else None
    return Row(
        tool.name,
        tool.version,
        found[1] if found else "missing",
        str(found[0]) if found else None,
        record["seconds"] if record else None,
        tool.purpose + (" (built when asked for)" if tool.on_demand else ""),
    )


def table(rows: list[Row]) -> Table:
    """The rows for people."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("tool", no_wrap=True)
    shown.add_column("version", overflow="fold")
    shown.add_column("from", overflow="fold")
    shown.add_column("build time", justify="right", no_wrap=True)
    shown.add_column("for")
    styles = {"built": "green", "path": "green", "missing": "yellow"}
    for line in rows:
        source = f"[{styles[line.source]}]{line.source}[/]" if line.source != "path" else f"[green]{line.path}[/]"
        seconds = "" if line.seconds is None else f"{line.seconds:.0f} s"
        shown.add_row(line.name, line.version, source, seconds, line.purpose)
    return shown


def tools(
    names: Annotated[
        list[str] | None, typer.Argument(help="tools to have ready; all of the local stack if none")
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="only show what is there; build nothing")] = False,
    json_output: Annotated[bool, typer.Option("--json", help="print one JSON list on standard output")] = False,
) -> None:
    """Take each pinned tool from PATH if its version is the pinned one, else build it once into .tools."""
    errors = Console(stderr=True)
    began = time.monotonic()
    try:
        chosen = select(names or (TOOLS_BY_NAME if list_only else LOCAL_STACK))
        if not list_only:
            builder.ensure(
                [tool.name for tool in chosen],
                progress=lambda line: errors.print(f"{time.monotonic() - began:5.0f} s  {line}", highlight=False),
            )
        rows = [row(tool) for tool in chosen]
    except ToolError as error:
        errors.print(f"[red]{error.problem}[/red]\nfix: {error.fix}", highlight=False)
        raise typer.Exit(1) from error
    except KeyboardInterrupt:
        errors.print("interrupted; compilers were ended, what was compiled is kept: run the same again to go on")
        raise typer.Exit(130) from None
    if json_output:
        print(json.dumps([asdict(line) for line in rows], indent=2))
    else:
        Console().print(table(rows))
