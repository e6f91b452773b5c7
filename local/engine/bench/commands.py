"""`srvmod bench engine` and `srvmod bench backtest`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

bench = typer.Typer(no_args_is_help=True)
FAILED = 1
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@bench.command()
def engine(
    json_output: Json = False,
    streams: Annotated[int, typer.Option(min=1, help="Streams at the same time.")] = 650,
    tokens_per_second: Annotated[int, typer.Option(min=1, help="Tokens per second of all streams together.")] = 28_000,
    seconds: Annotated[float, typer.Option(min=1, help="Time that is measured, after a warm-up.")] = 15.0,
) -> None:
    """The simulated engine on one CPU under the specification's load: tokens per second, timing error, CPU."""
    from srvmod.local.engine.bench.speed import BenchError, Speed, bench_engine

    try:
        result = bench_engine(Speed(streams=streams, tokens_per_second=tokens_per_second, seconds=seconds))
    except BenchError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    if json_output:
        typer.echo(json.dumps(result))
    else:
        for name, figure in result["figures"].items():
            goal = result["goals"].get(name)
            bound = "at least" if name == "tokensPerSecond" else "at most"
            typer.echo(f"{name:>26}  {figure}" + (f"  (goal: {bound} {goal})" if goal is not None else ""))
        typer.echo("met" if result["met"] else "missed")
    if not result["met"]:
        raise typer.Exit(FAILED)


@bench.command()
def backtest(
    json_output: Json = False,
    points: Annotated[bool, typer.Option(help="Compare with the published measurements, too.")] = True,
) -> None:
    """The simulated engine's step loop at virtual time against the planner: the same mixes, both answers."""
    # The engine's package belongs to its own image and is installed nowhere else.
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from srvmod.local.engine.bench.backtest import bench_backtest

    result, rows = bench_backtest(points=points)
    if json_output:
        typer.echo(json.dumps(result))
    else:
        _show(result, rows)
    if not result["met"]:
        raise typer.Exit(FAILED)


def _show(result: dict[str, Any], rows: list[Any]) -> None:
    head = ("mix", "ITL mean", "p95 request", "p95 token", "TTFT p95", "tokens/s", "KV")
    typer.echo("planner / simulator, ms; mix: sessions x prompt/output (spread, prefix hits)\n")
    typer.echo("{:>26} {:>15} {:>15} {:>12} {:>17} {:>17} {:>13}".format(*head))
    for row in rows:
        mix = row.mix
        name = f"{mix.sessions} x {mix.prompt}/{mix.output} ({mix.spread:g}, {mix.prefix_hit_rate:.0%})"
        cells = (
            f"{row.planner_itl_mean:.1f} / {row.simulator_itl_mean:.1f}",
            f"{row.planner_itl_p95:.1f} / {row.simulator_itl_p95_per_request:.1f}",
            f"- / {row.simulator_itl_p95_per_token:.1f}",
            f"{row.planner_ttft_p95:.0f} / {row.simulator_ttft_p95:.0f}",
            f"{row.planner_tokens_per_second:.0f} / {row.simulator_tokens_per_second:.0f}",
            f"{row.planner_kv_share:.1%} / {row.simulator_kv_share:.1%}",
        )
        typer.echo("{:>26} {:>15} {:>15} {:>12} {:>17} {:>17} {:>13}".format(name, *cells))
        typer.echo(f"{'':>26} ITL {row.difference:+.1%}: {row.explanation()}")
    for point in result["figures"]["measured"]:
        low, high = point["simulator_ttft_p50_between"]
        typer.echo(
            f"\n{point['id']} ({point['sessions']} sessions per engine): ITL measured {point['measured_itl']:.1f}, "
            f"planner {point['planner_itl']:.1f}, simulator {point['simulator_itl']:.1f} ms; TTFT p50 and p99 measured "
            f"{point['measured_ttft']} and {point['measured_ttft_p99']}, simulator {point['simulator_ttft_p50']:.0f} "
            f"({low:.0f} to {high:.0f}) and {point['simulator_ttft_p99']:.0f} ms; KV cache in use "
            f"{point['simulator_kv_share']:.0%}, {point['preemptions']} preemptions\n  {point['url']}"
        )
    typer.echo(
        "\nTTFT: both add what measured servers wait, a number of steps beyond the prompt's own with its spread; the\n"
        "simulator has of these only what its own steps don't make."
    )
    worst = result["figures"]["worstItlDifference"]
    typer.echo(f"worst difference {worst:.1%} (goal: at most {result['goals']['worstItlDifference']:.0%})")
    typer.echo("met" if result["met"] else "missed")
