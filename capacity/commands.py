"""`srvmod bench capacity`: the model's errors. `srvmod claims`: the specification's sentences and their verdicts."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

bench = typer.Typer(no_args_is_help=True)
FAILED = 1
WRONG_INPUT = 2
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@bench.command()
def capacity(
    json_output: Json = False,
    points: Annotated[
        Path | None, typer.Option(help="CSV of measured points to score, with the columns of the committed one.")
    ] = None,
) -> None:
    """Errors of the capacity model on points that its fit never saw. Exit code: 0 goals met, 1 missed, 2 wrong input.

    Without --points the committed points are cross-validated (random splits and leave-one-family-out). With it, the
    file's points are scored by the committed calibration, or by a fit without those that it shares with the file.
    Rows that are in order but that the model doesn't cover are counted, with the reason.
    """
    from srvmod.capacity.bench import bench_committed, bench_points
    from srvmod.capacity.table import PointsError, committed_text, read_file, read_points

    known = read_points(committed_text())
    try:
        if points is None:
            result = bench_committed(known)
        else:
            table = read_file(points)
            result = bench_points(table.points, known, table.unscored)
    except PointsError as error:
        typer.echo(f"--points: {error}", err=True)
        raise typer.Exit(WRONG_INPUT) from None
    if json_output:
        typer.echo(json.dumps(result.as_json()))
    else:
        _show_bench(result.as_json())
    if not result.met:
        raise typer.Exit(FAILED)


def _show_bench(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    figures, goals = result["figures"], result["goals"]
    table = Table(title=f"capacity model, {figures['points']} points", title_justify="left")
    for heading in ("how", "what", "n", "MAPE", "median", "p90", "worst", "worst point"):
        told = heading in ("how", "what", "worst point")
        table.add_column(heading, justify="left" if told else "right", overflow="fold")
    for how in ("scores", "randomSplits", "leaveOneFamilyOut"):
        for what, band in figures.get(how, {}).items():
            if band:
                shares = [f"{band[key]:.1%}" for key in ("mape", "median", "p90", "worst")]
                table.add_row(how, what, str(band["points"]), *shares, band["worst_id"])
    console = Console()
    console.print(table)
    left = figures.get("takenOutOfTheFit")
    if left:
        console.print(f"taken out of the fit, since the file has them: {', '.join(left)}", soft_wrap=True)
    unscored = figures.get("unscored")
    if unscored:
        console.print(f"{len(unscored)} of {figures['rows']} rows can't be scored:")
        for row in unscored:
            console.print(f"  line {row['line']}, {row['id']}: {row['reason']}", soft_wrap=True)
    if beyond := figures["beyondKvCache"]:
        console.print(
            "more sequences, by Little's law, than the KV cache holds; no engine decodes so many at once:",
            soft_wrap=True,
        )
        for point in beyond:
            line = f"  {point['id']}: {point['sequences']} sequences need {point['kvShare']:.1%} of it"
            console.print(line, soft_wrap=True)
    verdict = "met" if result["met"] else "missed"
    console.print(f"a plan takes {figures['planMs']} ms (at most {goals['planMs']:g})")
    limits = f"MAPE at most {goals['mape']:.0%}, p90 at most {goals['p90']:.0%}"
    console.print(f"goals for throughput and ITL of unseen points: {limits}: {verdict}")


PAGE = Path(__file__).resolve().parent.parent / "docs" / "claims.md"


def claims(
    json_output: Json = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write docs/claims.md.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; fail when docs/claims.md differs.")] = False,
    page: Annotated[Path, typer.Option(help="The page that is written or checked.")] = PAGE,
) -> None:
    """Every number and checkable sentence of the specification: verdict, condition, how it was judged, clause.

    Exit code: 0; 1 when --check finds the committed page out of date.
    """
    from srvmod.capacity.verdicts import as_json, as_markdown, rows

    found = rows()
    if check:
        text = page.read_text(encoding="utf-8") if page.is_file() else ""
        if text != as_markdown(found):
            typer.echo(f"{page}: isn't what the claims say now; fix: srvmod claims --markdown", err=True)
            raise typer.Exit(FAILED)
        typer.echo(f"{page.name}: as the claims say")
    elif markdown:
        page.write_text(as_markdown(found), encoding="utf-8")
        typer.echo(f"{page.name}: {len(found)} claims")
    elif json_output:
        typer.echo(json.dumps(as_json(found)))
    else:
        _show_claims(as_json(found))


def _show_claims(found: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=found["specification"], title_justify="left", show_lines=True)
    for heading in ("clause", "claim", "verdict", "when, why and what the model says"):
        table.add_column(heading)
    for claim in found["claims"]:
        value = f" = {claim['value']:,} {claim['unit']}" if claim["value"] is not None else ""
        told = [
            claim["condition"] and f"true {claim['condition']}",
            claim["settledBy"] and f"open: {claim['settledBy']}",
        ]
        told += [claim["why"], claim["evidence"]]
        text = "\n".join(part for part in told if part)
        table.add_row(claim["clause"], f"{claim['id']}{value}", claim["verdict"], text)
    console = Console()
    console.print(table)
    console.print(", ".join(f"{count} {verdict}" for verdict, count in found["counts"].items()))
