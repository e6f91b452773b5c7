"""`srvmod admission render`: the admission policies as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="The specification's clauses as admission policies.")
ROOT = Path(__file__).resolve().parents[2]
FOLDER = "manifests/admission"


@app.callback()
def root() -> None:
    """The specification's clauses as ValidatingAdmissionPolicies."""


@app.command()
def render(
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail when the committed files differ.")
    ] = False,
    folder: Annotated[Path, typer.Option(help="Where the files lie.")] = ROOT / FOLDER,
) -> None:
    """Write manifests/admission/ from policies/admission."""
    from srvmod.policies.admission.documents import files

    wanted = files()
    there = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))}
    stale = sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))
    if check:
        for name in stale:
            typer.echo(f"{folder / name} isn't what policies/admission renders", err=True)
        if stale:
            typer.echo("fix: srvmod admission render", err=True)
            raise typer.Exit(1)
        typer.echo(f"{len(wanted)} policies: as rendered")
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name in there.keys() - wanted.keys():
        (folder / name).unlink()
    for name, content in wanted.items():
        (folder / name).write_text(content, encoding="utf-8")
    typer.echo(f"{folder}: {len(wanted)} policies")
