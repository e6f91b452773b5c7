"""`srvmod plan`: engines, nodes, latency and cost of a traffic mix, from an environment's file or from options."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from srvmod.capacity import CapacityError, Layout, Per, Slo, Traffic
from srvmod.contract import (
    INSTANCE_TYPES,
    ITL_P95_MS,
    LLAMA_3_70B,
    P5_48XLARGE,
    TTFT_MS,
    KvCacheDtype,
    Milliseconds,
    ModelConfigError,
    ModelShape,
    shape_from_config,
)
from srvmod.contract.stack_files import unknown_environment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from srvmod.capacity.report import SweepPoint
    from srvmod.infra.settings.speculation import SpeculationSettings

ROOT = Path(__file__).resolve().parent.parent
WRONG_INPUT = 2
OPTIONS = {
    "sessions": "--sessions",
    "prompt_tokens": "--prompt",
    "output_tokens": "--output",
    "prefix_hit_rate": "--prefix-hit",
    "tokens_per_second": "--rate",
    "itl_p95": "--itl-ms",
    "ttft": "--ttft-ms",
    "tensor_parallel_size": "--tp",
    "engines_per_node": "--tp",
    "max_num_batched_tokens": "--budget",
}
"""Fields that capacity's errors name, and the options that give them."""


class _OptionsError(ValueError):
    """Options that don't go together, or can't be read."""


def plan(
    *,
    env: Annotated[
        str | None, typer.Option("--env", "-e", help="Environment whose traffic, targets and price count.")
    ] = None,
    sessions: Annotated[float | None, typer.Option(help="Sessions that stream at the same time.")] = None,
    prompt: Annotated[float | None, typer.Option(help="Mean prompt, tokens.")] = None,
    output: Annotated[float | None, typer.Option(help="Mean answer, tokens.")] = None,
    rate: Annotated[float | None, typer.Option(help="Output tokens per second of all sessions together.")] = None,
    itl_ms: Annotated[float | None, typer.Option(help=f"ITL p95, ms; {ITL_P95_MS.value} when left out.")] = None,
    itl_per: Annotated[Per | None, typer.Option(help="p95 over requests' means, or over every gap.")] = None,
    ttft_ms: Annotated[float | None, typer.Option(help=f"TTFT, ms; {TTFT_MS.value} when left out.")] = None,
    prefix_hit: Annotated[float | None, typer.Option(help="Share of prompt tokens found cached, 0 to 1.")] = None,
    price: Annotated[float | None, typer.Option(help="USD per node and hour.")] = None,
    tp: Annotated[int | None, typer.Option(help="GPUs per engine.")] = None,
    kv: Annotated[KvCacheDtype | None, typer.Option(help="Element type of the KV cache.")] = None,
    budget: Annotated[int | None, typer.Option(help="Token budget of a step.")] = None,
    instance: Annotated[str | None, typer.Option(help=f"One of {', '.join(INSTANCE_TYPES)}.")] = None,
    config: Annotated[Path | None, typer.Option(help="config.json of another dense model.")] = None,
    sweep: Annotated[bool, typer.Option("--sweep", help="Sessions per engine against latency.")] = False,
    plot: Annotated[Path | None, typer.Option(help="With --sweep: SVG or PNG file to write.")] = None,
    json_output: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    root: Annotated[Path, typer.Option(help="Folder with Pulumi.<env>.yaml.")] = ROOT,
) -> None:
    """Engines and nodes for a traffic mix, with intervals, what binds and what it costs.

    Options replace what --env says. Exit code: 0 planned, 2 wrong input or targets that no number of engines holds.
    """
    from srvmod.capacity.report import lines, plan_as_json, sweep_as_json, sweep_counts
    from srvmod.capacity.report import sweep as sweep_sessions
    from srvmod.infra.settings.sizing import plan_limited

    try:
        _check_plot(plot, sweep)
        base = _from_environment(root, env) if env else None
        model = shape_from_config(str(config), _text(config)) if config else base[1] if base else LLAMA_3_70B
        traffic = _traffic(
            base[0] if base else None,
            sessions=sessions,
            prompt=prompt,
            output=output,
            rate=rate,
            prefix_hit=prefix_hit,
        )
        slo = _slo(base[2] if base else Slo(), itl_ms, itl_per, ttft_ms)
        layout = _layout(base[3] if base else Layout(), tp, kv, budget, instance)
        usd = price if price is not None else base[4] if base else None
        if usd is not None and not (math.isfinite(usd) and usd >= 0):
            raise _OptionsError(f"--price {usd}: isn't a price; allowed: 0 or more USD per node and hour")
        asked = base[5] if base else None
        planned = plan_limited(traffic, model, layout, slo, asked)
    except CapacityError as error:
        option = OPTIONS.get(error.field, error.field)
        typer.echo(f"{option} {error.value}: {error.problem}; allowed: {error.allowed}", err=True)
        raise typer.Exit(WRONG_INPUT) from None
    except (_OptionsError, ModelConfigError) as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WRONG_INPUT) from None
    found = plan_as_json(planned, model, usd, asked.drafting if asked else None)
    points = (
        sweep_sessions(traffic, model, layout, slo, sweep_counts(planned.most_sessions_per_engine)) if sweep else []
    )
    if plot:
        _write_plot(plot, points, slo, f"{model.id} on {layout.instance.name}, {traffic.prompt_tokens} prompt and "
                    f"{traffic.output_tokens} output tokens")  # fmt: skip
    if json_output:
        typer.echo(json.dumps({**found, "sweep": sweep_as_json(points)} if sweep else found))
        return
    _show(list(lines(found)), sweep_as_json(points))
    if env and usd is not None:
        typer.echo(f"nodes alone; with AWS's own services: srvmod cost --env {env}")


def _from_environment(
    root: Path, env: str
) -> "tuple[Traffic, ModelShape, Slo, Layout, float | None, SpeculationSettings | None]":
    from srvmod.infra.settings import SettingsError, load_stack_file
    from srvmod.infra.settings.sizing import layout_of, traffic_of

    if problem := unknown_environment(env, root):
        raise _OptionsError(problem)
    try:
        settings = load_stack_file(root / f"Pulumi.{env}.yaml")
    except SettingsError as error:
        raise _OptionsError(str(error)) from None
    slo = Slo(itl_p95=Milliseconds(settings.slo.itl_p95_ms), ttft=Milliseconds(settings.slo.ttft_ms))
    price = settings.prices.gpu_node
    layout = layout_of(settings.model, settings.engine)
    asked = settings.engine.speculation
    usd = price.usd if price else None
    return traffic_of(settings.traffic), settings.model_shape, slo, layout, usd, asked


def _traffic(
    base: Traffic | None,
    *,
    sessions: float | None,
    prompt: float | None,
    output: float | None,
    rate: float | None,
    prefix_hit: float | None,
) -> Traffic:
    given: dict[str, Any] = {
        "sessions": sessions,
        "prompt_tokens": prompt,
        "output_tokens": output,
        "tokens_per_second": rate,
        "prefix_hit_rate": prefix_hit,
    }
    given = {name: value for name, value in given.items() if value is not None}
    if base is None:
        missing = [OPTIONS[name] for name in ("sessions", "prompt_tokens", "output_tokens") if name not in given]
        if missing:
            raise _OptionsError(f"{', '.join(missing)}: missing; give them, or --env with an environment's name")
    for name in ("sessions", "prompt_tokens", "output_tokens"):
        value = given.get(name)
        if isinstance(value, float) and value.is_integer():
            given[name] = int(value)
    return replace(base, **given) if base else Traffic(**given)


def _slo(base: Slo, itl_ms: float | None, per: Per | None, ttft_ms: float | None) -> Slo:
    return Slo(
        itl_p95=base.itl_p95 if itl_ms is None else Milliseconds(itl_ms),
        ttft=base.ttft if ttft_ms is None else Milliseconds(ttft_ms),
        per=per or base.per,
    )


def _layout(base: Layout, tp: int | None, kv: KvCacheDtype | None, budget: int | None, instance: str | None) -> Layout:
    name = instance or P5_48XLARGE.name
    if name not in INSTANCE_TYPES:
        raise _OptionsError(f"--instance {name}: isn't known; allowed: {', '.join(INSTANCE_TYPES)}")
    size = base.tensor_parallel_size if tp is None else tp
    gpus = INSTANCE_TYPES[name].gpus
    return replace(
        base,
        instance=INSTANCE_TYPES[name],
        tensor_parallel_size=size,
        engines_per_node=max(1, gpus // size) if size > 0 else 1,
        kv_cache_dtype=kv or base.kv_cache_dtype,
        max_num_batched_tokens=base.max_num_batched_tokens if budget is None else budget,
    )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _OptionsError(f"--config {path}: can't be read: {error}; allowed: a model's config.json") from None


def _check_plot(plot: Path | None, sweep: bool) -> None:
    if plot and not sweep:
        raise _OptionsError("--plot: draws a sweep; give --sweep, too")
    if plot and plot.suffix not in {".svg", ".png"}:
        raise _OptionsError(f"--plot {plot}: isn't SVG or PNG; allowed: a name that ends in .svg or .png")


def _write_plot(path: Path, points: "Sequence[SweepPoint]", slo: Slo, title: str) -> None:
    from srvmod.capacity.plot import sweep_png, sweep_svg

    try:
        if path.suffix == ".png":
            path.write_bytes(sweep_png(points, slo, title))
        else:
            path.write_text(sweep_svg(points, slo, title), encoding="utf-8")
    except OSError as error:
        typer.echo(f"--plot {path}: can't be written: {error.strerror}", err=True)
        raise typer.Exit(WRONG_INPUT) from None


def _show(rows: list[tuple[str, str]], points: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from srvmod.capacity.report import between

    console = Console()
    for what, value in rows:
        console.print(f"{what:>30}  {value}", highlight=False, soft_wrap=True)
    console.print("in brackets: what 80 % of measured times of unseen stacks lay within", style="dim")
    if not points:
        return
    table = Table(title="one engine", title_justify="left")
    for heading in ("sessions", "ITL mean, ms", "p95 per request, ms", "TTFT p95, ms", "tokens/s", "KV", "misses"):
        table.add_column(heading, justify="left" if heading == "misses" else "right")
    for point in points:
        full = point["saturated"]
        table.add_row(
            str(point["sessionsPerEngine"]),
            "-" if full else between(point["itlMeanMs"], ""),
            "-" if full else between(point["itlP95Ms"], ""),
            "-" if full else between(point["ttftP95Ms"], "", 0),
            "-" if full else between(point["tokensPerSecond"], "", 0),
            f"{point['kvShare']:.0%}",
            f"saturated: {full}" if full else ", ".join(point["missed"]),
        )
    console.print(table)
