"""`srvmod render`: what each environment applies, as files. `srvmod bench`: what the program costs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from srvmod.contract import counted
from srvmod.contract.stack_files import environments
from srvmod.infra.environments import judged

app = typer.Typer(no_args_is_help=True)
bench = typer.Typer(no_args_is_help=True, help="Speed figures against their goals; exit code 1 when one is missed.")

ROOT = Path(__file__).resolve().parent.parent
FAILED = 1


@app.command()
def render(
    env: Annotated[
        list[str] | None, typer.Option("--env", "-e", help="Environment; may be repeated; all when left out.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; fail when the committed files differ.")
    ] = False,
    root: Annotated[Path, typer.Option(help="Folder with Pulumi.<env>.yaml and manifests/.")] = ROOT,
) -> None:
    """Render `manifests/<env>/` from the program, without engine, cloud or cluster."""
    judged(env or [], root)
    # only now: it takes seconds to import
    from srvmod.infra.render.environments import differences, rendered, write
    from srvmod.infra.settings import SettingsError

    chosen = env or environments(root)
    stale = 0
    for name in chosen:
        try:
            contents = rendered(root, name)
        except SettingsError as error:
            typer.echo(str(error), err=True)
            raise typer.Exit(FAILED) from None
        if not check:
            folder = write(root, name, contents)
            typer.echo(f"{folder.relative_to(root)}: {counted(len(contents), 'file')}")
            continue
        for difference in differences(root, name, contents):
            stale += 1
            typer.echo(f"{difference.path.relative_to(root)} {difference.what}")
            if difference.diff:
                typer.echo(difference.diff)
    if stale:
        typer.echo(f"{counted(stale, 'file')} not as the program renders; fix: srvmod render", err=True)
        raise typer.Exit(FAILED)
    if check:
        typer.echo(f"{', '.join(chosen)}: as rendered")


@bench.command()
def program(
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    env: Annotated[str, typer.Option("--env", "-e", help="Environment whose program is run.")] = "prod",
    runs: Annotated[int, typer.Option(min=1, help="Runs of each kind; medians count.")] = 5,
) -> None:
    """A full run of the program without engine and cloud, against importing the same SDK modules."""
    from srvmod.infra.bench import bench_program

    result = bench_program(ROOT, env, runs)
    if json_output:
        typer.echo(json.dumps(result))
    else:
        for name, figure in result["figures"].items():
            goal = result["goals"].get(name)
            typer.echo(f"{name:>26}  {figure}" + (f"  (goal: at most {goal})" if goal else ""))
        typer.echo("met" if result["met"] else "missed")
    if not result["met"]:
        raise typer.Exit(FAILED)
