"""The simulated engine against the planner: the same mix, both answers, and where they come apart.

Both use the same step times, so they can differ in what they think that steps hold. A step that computes a prompt is
bound by arithmetic, one that only decodes by reading weights, so the mean of uneven steps takes longer than a step of
mean work; the simulator has each step, the planner an estimate of this. And sessions that wait for their prompt don't
decode: the simulator has them waiting.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from srvmod.capacity import Prediction, Stack, Traffic, predict
from srvmod.capacity.planner import first_token_between
from srvmod.capacity.points import Kind, Point
from srvmod.capacity.scores import quantile
from srvmod.capacity.table import committed_text, read_points
from srvmod.contract.bench import BenchResult
from srvmod.local.engine.bench.virtual import Mix, Observed, engine_config, observe
from srvmod.local.engine.tiny_weights import write_tiny_weights

from srvmod_engine.config import EngineConfig
from srvmod_engine.hardware import instances
from srvmod_engine.step_model import StepBatch, load_step_model

MIXES: Final = (
    Mix(232, 128, 1024),
    Mix(166, 294, 294),
    Mix(149, 512, 512),
    Mix(96, 1024, 512),
    Mix(36, 2048, 256),
    Mix(149, 512, 512, spread=0.6),
    Mix(149, 512, 512, prefix_hit_rate=0.5),
)
"""The specification's mixes with about the sessions at which an engine has 30 ms per token."""
FLAGS: Final = ("-tp=4", "--kv-cache-dtype=fp8", "--max-num-seqs=768", "--max-num-batched-tokens=2048")
GOAL: Final = 0.10
"""Relative difference in mean inter-token latency up to which both count as one answer."""


@dataclass(frozen=True)
class Row:
    """One mix, both answers. Times in ms, rates in tokens/s per engine, shares from 0 to 1."""

    mix: Mix
    planner_itl_mean: float
    simulator_itl_mean: float
    planner_itl_p95: float
    simulator_itl_p95_per_request: float
    simulator_itl_p95_per_token: float
    planner_ttft_p95: float
    simulator_ttft_p95: float
    planner_tokens_per_second: float
    simulator_tokens_per_second: float
    planner_kv_share: float
    simulator_kv_share: float
    mean_state_itl: float
    """The step model's answer for the simulator's mean step."""
    mean_decodes: float
    preemptions: int

    @property
    def difference(self) -> float:
        """Simulator's mean inter-token latency over the planner's, less one."""
        return self.simulator_itl_mean / self.planner_itl_mean - 1

    @property
    def unevenness(self) -> float:
        """What uneven steps cost the simulator, relative to a step of its mean work."""
        return self.simulator_itl_mean / self.mean_state_itl - 1

    @property
    def planned_unevenness(self) -> float:
        """What the planner adds to a step of the simulator's mean work."""
        return self.planner_itl_mean / self.mean_state_itl - 1

    def explanation(self) -> str:
        """The difference in words."""
        return (
            f"the simulator's mean step takes {self.mean_state_itl:.1f} ms; its steps are uneven, which costs "
            f"{self.unevenness:+.1%}, the planner reckons with {self.planned_unevenness:+.1%}; "
            f"{self.mean_decodes:.1f} of {self.mix.sessions} sessions decode on average"
        )


@dataclass(frozen=True)
class Measured:
    """A published measurement, and what planner and simulator say for its sessions (ms)."""

    id: str
    url: str
    sessions: int
    measured_itl: float
    planner_itl: float
    simulator_itl: float
    measured_ttft: float | None
    measured_ttft_p99: float | None
    planner_ttft_p50: float | None
    """None near saturation."""
    simulator_ttft_p50: float
    simulator_ttft_p50_between: tuple[float, float]
    """What 80 % of measured medians of unseen stacks would lie within."""
    simulator_ttft_p99: float
    simulator_kv_share: float
    preemptions: int


def mean_batch(observed: Observed) -> StepBatch:
    """The mean step, weighted by who waits for it: the sequences that decode."""
    weight = sum(batch.decode_seqs for batch, _ in observed.steps)
    steps = len(observed.steps)

    def mean(values: Iterator[float], by: float) -> int:
        return round(sum(values) / by)

    batches = [batch for batch, _ in observed.steps]
    return StepBatch(
        decode_seqs=mean((batch.decode_seqs**2 for batch in batches), weight),
        decode_context=mean((batch.decode_context * batch.decode_seqs for batch in batches), weight),
        prefill_tokens=mean((batch.prefill_tokens * batch.decode_seqs for batch in batches), weight),
        prefill_context=mean((batch.prefill_context * batch.decode_seqs for batch in batches), weight),
        prefill_seqs=mean(iter(float(batch.prefill_seqs) for batch in batches), steps),
    )


def _planned(config: EngineConfig, mix: Mix) -> Prediction:
    traffic = Traffic(mix.sessions, mix.prompt, mix.output, mix.prefix_hit_rate)
    return predict(traffic, config.shape, config.layout, mix.sessions)


def compare(config: EngineConfig, mix: Mix) -> Row:
    """Ask both. Raises CapacityError for a mix that the planner refuses, RuntimeError when the simulator died."""
    planned = _planned(config, mix)
    seen = observe(config, mix)
    gaps, requests, firsts = seen.gaps, seen.request_means, seen.first_tokens
    batch = mean_batch(seen)
    decodes = sum(step.decode_seqs for step, _ in seen.steps) / len(seen.steps)
    return Row(
        mix=mix,
        planner_itl_mean=planned.itl_mean_ms,
        simulator_itl_mean=sum(gaps) / len(gaps) * 1e3,
        planner_itl_p95=planned.itl_p95_ms,
        simulator_itl_p95_per_request=quantile(requests, 0.95) * 1e3,
        simulator_itl_p95_per_token=quantile(gaps, 0.95) * 1e3,
        planner_ttft_p95=planned.ttft_p95_ms,
        simulator_ttft_p95=quantile(firsts, 0.95) * 1e3,
        planner_tokens_per_second=planned.tokens_per_second,
        simulator_tokens_per_second=seen.tokens / seen.seconds,
        planner_kv_share=planned.kv_share,
        simulator_kv_share=seen.kv_share,
        mean_state_itl=load_step_model(config).seconds(batch) * 1e3,
        mean_decodes=decodes,
        preemptions=seen.preemptions,
    )


def measured_points(weights: Path) -> Iterator[Measured]:
    """The published online measurements of vLLM with FP8 weights on hardware that can be pretended."""
    machines = {instance.gpu.name: name for name, instance in instances().items()}
    for point in read_points(committed_text()):
        online = point.kind is Kind.ONLINE and point.stack is Stack.VLLM and point.itl_ms is not None
        if online and point.weight_bytes == 1 and point.gpu in machines:
            yield measured_point(point, weights, machines[point.gpu])


def measured_point(point: Point, weights: Path, instance: str) -> Measured:
    """What planner and simulator say for a measurement on machines of this type."""
    sessions = round(point.concurrency)
    mix = Mix(sessions, round(point.prompt_tokens), round(point.output_tokens), spread=0.6)
    flags = [
        f"-tp={point.tensor_parallel_size}",
        f"--kv-cache-dtype={'fp8' if point.kv_bytes == 1 else 'auto'}",
        "--max-num-seqs=1024",
        "--max-num-batched-tokens=8192",
    ]
    config = engine_config(weights, *flags, instance=instance)
    seen, planned = observe(config, mix, answers=4), _planned(config, mix)
    first = first_token_between(quantile(seen.first_tokens, 0.5) * 1e3, tail=False)
    return Measured(
        id=point.id,
        url=point.url,
        sessions=sessions,
        measured_itl=point.measured,
        planner_itl=planned.itl_mean_ms,
        simulator_itl=sum(seen.gaps) / len(seen.gaps) * 1e3,
        measured_ttft=point.ttft_ms,
        measured_ttft_p99=point.ttft_p99_ms,
        planner_ttft_p50=_number(planned.ttft_p50_ms),
        simulator_ttft_p50=first.likely,
        simulator_ttft_p50_between=(first.low, first.high),
        simulator_ttft_p99=quantile(seen.first_tokens, 0.99) * 1e3,
        simulator_kv_share=seen.kv_share,
        preemptions=seen.preemptions,
    )


def bench_backtest(mixes: Sequence[Mix] = MIXES, *, points: bool = True) -> tuple[dict[str, Any], list[Row]]:
    """All mixes and points: the bench result, and the rows for people."""
    with tempfile.TemporaryDirectory() as folder:
        weights = Path(folder)
        write_tiny_weights(weights)
        config = engine_config(weights, *FLAGS)
        rows = [compare(config, mix) for mix in mixes]
        measured = [asdict(point) for point in measured_points(weights)] if points else []
    worst = max(abs(row.difference) for row in rows)
    shown = [
        {
            **{key: _number(value) for key, value in asdict(row).items()},
            "difference": round(row.difference, 4),
            "explanation": row.explanation(),
        }
        for row in rows
    ]
    figures = {"worstItlDifference": round(worst, 4), "mixes": shown, "measured": measured}
    result = BenchResult("backtest", figures, {"worstItlDifference": GOAL}, worst <= GOAL).as_json()
    return result, rows


def _number(value: Any) -> Any:
    """JSON has no infinity: None stands for a prediction that there is none."""
    if isinstance(value, float):
        return round(value, 3) if math.isfinite(value) else None
    return value
