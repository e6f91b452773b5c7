"""`srvmod images`: the container images that an environment runs, and the commands that copy them into a mirror."""

from pathlib import Path
from typing import Annotated

import typer

from srvmod.infra.environments import WRONG_INPUT, judged

ROOT = Path(__file__).resolve().parent.parent


def images(
    env: Annotated[str, typer.Option("--env", "-e", help="Environment: the stack's name.")],
    mirror_to: Annotated[
        str | None,
        typer.Option("--mirror-to", help="Registry with a path; prints `crane copy` commands, to be piped to sh."),
    ] = None,
    root: Annotated[Path, typer.Option(help="Folder with Pulumi.<env>.yaml.")] = ROOT,
) -> None:
    """Images by their own registries, whatever mirror the environment uses. Charts bring more: see their values."""
    judged([env], root)
    from srvmod.infra import versions
    from srvmod.infra.settings import SettingsError, load_stack_file

    try:
        settings = load_stack_file(root / f"Pulumi.{env}.yaml")
    except SettingsError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WRONG_INPUT) from None
    pinned = [value for value in vars(versions).values() if isinstance(value, versions.Image)]
    sources = {found.reference for found in pinned if found.repository != versions.VLLM.repository}
    mirror = mirror_to or settings.images.registry
    engine = settings.engine.image
    if mirror and engine.startswith(f"{mirror}/"):
        engine = versions.VLLM.reference  # what the mirror's copy was made from
    for source in sorted({*sources, engine}):
        if mirror_to is None:
            typer.echo(source)
        else:
            typer.echo(f"crane copy {source} {target(mirror_to, source)}")


def target(mirror: str, source: str) -> str:
    """Where an image lies in a mirror: the same path and tag; a digest can't be asked for, it comes with the copy."""
    path = source.partition("/")[2]
    name, at, _ = path.partition("@")
    return f"{mirror}/{name}" if at else f"{mirror}/{path}"
