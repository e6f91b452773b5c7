"""`srvmod check`: the invariants on any manifests, without credentials and network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

FORMATS = ("text", "github", "sarif", "junit", "json")
UNUSABLE = 2


def check(  # noqa: PLR0917 - typer reads them as options
    paths: Annotated[list[str], typer.Argument(metavar="PATH…", help="Files, folders, or - for standard input.")],
    format_name: Annotated[str, typer.Option("--format", help=f"One of {', '.join(FORMATS)}.")] = "text",
    config: Annotated[Path | None, typer.Option(help="Numbers and levels (YAML or JSON).")] = None,
    engine_version: Annotated[
        str | None, typer.Option(help="vLLM version whose options and metrics count, instead of the pinned one.")
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="The input is all that is applied: what is missing doesn't exist.")
    ] = False,
    output: Annotated[Path | None, typer.Option(help="Write the report here instead of standard output.")] = None,
) -> None:
    """Check manifests against the specification. Exit code: 0 ok, 1 violations, 2 can't read or can't tell."""
    from srvmod.policies.check import check as run
    from srvmod.policies.config import Config, ConfigError, load
    from srvmod.policies.engine_versions import VersionError
    from srvmod.policies.report import render

    if format_name not in FORMATS:
        typer.echo(f"--format {format_name}: not a format; allowed: {', '.join(FORMATS)}", err=True)
        raise typer.Exit(UNUSABLE)
    try:
        chosen = load(config) if config else Config()
        update: dict[str, object] = {"engine_version": engine_version} if engine_version else {}
        if whole:
            update["whole"] = True
        result = run(paths, chosen.model_copy(update=update))
    except (ConfigError, VersionError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(UNUSABLE) from None
    report = render(result, format_name)
    if output:
        output.write_text(report, encoding="utf-8")
    else:
        typer.echo(report, nl=False)
    raise typer.Exit(result.exit_code)


bench = typer.Typer(no_args_is_help=True)


@bench.command("check")
def bench_check(
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    folder: Annotated[Path, typer.Option(help="Manifests to check.")] = Path("manifests"),
    runs: Annotated[int, typer.Option(min=1, help="Runs of each program; medians count.")] = 3,
    checkov: Annotated[str | None, typer.Option(help="Path of checkov, which needs an environment of its own.")] = None,
    conftest: Annotated[str | None, typer.Option(help="Path of conftest.")] = None,
) -> None:
    """Time and memory of `srvmod check`, beside checkov and conftest where they are installed."""
    from srvmod.policies.bench import as_json, bench_check, shown

    result = bench_check(folder, runs, checkov, conftest)
    typer.echo(as_json(result) if json_output else shown(result))
    if not result["met"]:
        raise typer.Exit(1)
