"""`srvmod cost`: what environments cost, from the prices in their own settings."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from srvmod.contract.stack_files import environments
from srvmod.infra.environments import WRONG_INPUT, judged

if TYPE_CHECKING:
    from srvmod.infra.cost import Picture

ROOT = Path(__file__).resolve().parent.parent
INCOMPLETE = 1


def cost(
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", help="Environment; may be repeated; when left out, all but simulated ones."),
    ] = None,
    load: Annotated[
        float, typer.Option("--load", help="Mean traffic as a share of the peak: more than 0, at most 1.")
    ] = 1.0,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    root: Annotated[Path, typer.Option(help="Folder with Pulumi.<env>.yaml.")] = ROOT,
) -> None:
    """Nodes and AWS's own services times the prices in `prices`, per hour, month and million output tokens.

    Exit code: 0 complete, 1 a price is missing (its name is printed), 2 wrong input.
    """
    judged(env or [], root)
    # only now: it takes seconds to import
    from srvmod.infra.cost import picture
    from srvmod.infra.settings import SettingsError, load_stack_file

    try:
        every = [load_stack_file(root / f"Pulumi.{name}.yaml") for name in env or environments(root)]
        # nobody pays for a simulation; asked for by name, it is answered
        pictures = [picture(settings, load) for settings in every if env or not settings.aws.simulated]
    except (SettingsError, ValueError) as error:
        typer.echo(str(error) if isinstance(error, SettingsError) else f"--load: {error}", err=True)
        raise typer.Exit(WRONG_INPUT) from None
    if json_output:
        _print_json(pictures)
    else:
        _show(pictures)
    if any(found.missing for found in pictures):
        raise typer.Exit(INCOMPLETE)


def _print_json(pictures: "Sequence[Picture]") -> None:
    from srvmod.infra.cost import HOURS_PER_MONTH, NOT_COUNTED

    environments = {
        found.environment: {
            "region": found.region,
            "nodes": found.nodes,
            "mostNodes": found.most_nodes,
            "load": found.load,
            "tokensPerSecond": round(found.tokens_per_second, 1),
            "usdPerHour": round(found.usd_per_hour, 4),
            "usdPerMonth": round(found.usd_per_month, 2),
            "mostUsdPerHour": _rounded(found.most_usd_per_hour, 4),
            "usdPerMillionTokens": _rounded(found.usd_per_million_tokens, 4),
            "missing": found.missing,
            "lines": [
                {
                    "what": line.what,
                    "units": line.units,
                    "unit": "hour" if line.hourly else "month",
                    "usdPerHour": _rounded(line.usd_per_hour, 4),
                    "usdPerMonth": _rounded(line.usd_per_month, 2),
                    "price": line.price.model_dump(mode="json", by_alias=True) if line.price else None,
                }
                for line in found.lines
            ],
        }
        for found in pictures
    }
    print(
        json.dumps(
            {
                "currency": "USD",
                "hoursPerMonth": HOURS_PER_MONTH,
                "notCounted": NOT_COUNTED,
                "environments": environments,
            },
            indent=2,
        )
    )


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def _show(pictures: "Sequence[Picture]") -> None:
    from rich.console import Console
    from rich.table import Table

    from srvmod.infra.cost import HOURS_PER_MONTH, NOT_COUNTED

    console = Console()
    sources: dict[str, str] = {}
    for found in pictures:
        title = f"{found.environment} in {found.region}: USD, without tax; a month is {HOURS_PER_MONTH} h"
        table = Table(title=title, title_justify="left")
        table.add_column("what")
        for heading in ("units", "price", "per hour", "per month"):
            table.add_column(heading, justify="right")
        table.add_column("read on")
        for line in found.lines:
            if line.price is None:
                told = "missing" if line.units else "not needed"
                table.add_row(line.what, f"{line.units:,}", told, "", "", "")
                continue
            sources[f"{line.key}, read on {line.price.read_on}"] = line.price.source
            table.add_row(
                line.what,
                f"{line.units:,}",
                f"{line.price.usd:g}/{'h' if line.hourly else 'month'}",
                f"{line.usd_per_hour:,.2f}",
                f"{line.usd_per_month:,.0f}",
                str(line.price.read_on),
            )
        table.add_section()
        table.add_row(
            "sum of what has a price", "", "", f"{found.usd_per_hour:,.2f}", f"{found.usd_per_month:,.0f}", ""
        )
        console.print(table)
        if found.usd_per_million_tokens is not None:
            console.print(
                f"{found.usd_per_million_tokens:,.2f} USD per million output tokens at {found.load:.0%} of peak "
                f"traffic (predicted peak of the fewest engines: {found.tokens_per_second:,.0f} tokens/s)"
            )
        if found.most_usd_per_hour is not None:
            console.print(f"at most {found.most_usd_per_hour:,.2f} USD per hour, with {found.most_nodes} nodes")
        if found.missing:
            fix = f"Pulumi.{found.environment}.yaml"
            console.print(f"missing: {', '.join(found.missing)}; set each with its date and source in {fix}")
        console.print()
    for what, source in sources.items():
        console.print(f"{what}: {source}", soft_wrap=True)
    console.print(f"not counted: {'; '.join(NOT_COUNTED)}", soft_wrap=True)
