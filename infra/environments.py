"""A mistyped environment is told at once: nothing heavy is imported before."""

from collections.abc import Sequence
from pathlib import Path

import typer

from srvmod.contract.stack_files import unknown_environment

WRONG_INPUT = 2


def judged(names: Sequence[str], root: Path) -> None:
    """Ends the command with exit code 2 and one line when one of the names is no environment."""
    for name in names:
        if problem := unknown_environment(name, root):
            typer.echo(problem, err=True)
            raise typer.Exit(WRONG_INPUT)
