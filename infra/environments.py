"""Which environments there are: one per stack file. Imports nothing, so that a mistyped name is told at once."""

from collections.abc import Sequence
from pathlib import Path

import typer

WRONG_INPUT = 2


def environments(root: Path) -> list[str]:
    """Names of the stacks that have a `Pulumi.<name>.yaml` in `root`, sorted."""
    return sorted(path.name.removeprefix("Pulumi.").removesuffix(".yaml") for path in root.glob("Pulumi.*.yaml"))


def judged(names: Sequence[str], root: Path) -> None:
    """Ends the command with exit code 2 and one line when one of the names is no environment."""
    known = environments(root)
    for name in names:
        if name not in known:
            typer.echo(f"--env {name}: no such environment; allowed: {', '.join(known)}", err=True)
            raise typer.Exit(WRONG_INPUT)
