"""`srvmod preflight`: whether an account has what an environment needs, before anything is made."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

ROOT = Path(__file__).resolve().parents[2]
UNREADABLE = 3


def preflight(
    env: Annotated[str, typer.Option("--env", "-e", help="Environment: the stack's name.")],
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    permissions: Annotated[
        bool, typer.Option("--permissions", help="Print the IAM policy that this command needs; ask nothing.")
    ] = False,
    root: Annotated[Path, typer.Option(help="Folder with Pulumi.<env>.yaml and manifests/.")] = ROOT,
) -> None:
    """Ask the account for what the environment needs; change nothing.

    Exit code: 0 all ok, 1 something will fail, 2 something can't be told, 3 the environment's own files are wrong.
    """
    from rich.console import Console

    from srvmod.ops.preflight.account import Account, policy
    from srvmod.ops.preflight.answers import exit_code
    from srvmod.ops.preflight.needs import NeedsError, read
    from srvmod.ops.preflight.report import as_json, show
    from srvmod.ops.preflight.run import run

    try:
        needs = read(root, env)
    except NeedsError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(UNREADABLE) from None
    if permissions:
        typer.echo(json.dumps(policy(needs), indent=2))
        return
    console = Console()
    if endpoint := os.environ.get("AWS_ENDPOINT_URL"):
        typer.echo(f"AWS_ENDPOINT_URL is set: {endpoint} is asked, not AWS", err=True)
    with Console(stderr=True).status(f"asking account {needs.account_id}"):
        answers = list(run(needs, Account(needs.region)))
    if json_output:
        typer.echo(as_json(needs, answers))
    else:
        show(needs, answers, console)
    raise typer.Exit(exit_code(answers))
