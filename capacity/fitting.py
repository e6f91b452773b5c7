"""Fits the step model's factors to measured points: damped Gauss-Newton on logarithms, with priors, plain Python.

The residual of a point is the logarithm of predicted over measured. Large ones count less (a published number may
have been measured in a way that its source doesn't tell). Each factor is drawn to where it starts, by its own spread:
without points of a stack its host time stays at the mean of the others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Final

from srvmod.capacity.parameters import HOST_SEQUENCES, StepParameters
from srvmod.capacity.points import Point
from srvmod.capacity.runs import Run, run_of
from srvmod.capacity.stacks import Stack
from srvmod.capacity.steptime import MICROSECOND, StepModel, host_sequences

NOISE: Final = 0.05
"""Expected spread of a residual."""
OUTLIER: Final = 0.06
"""Residual from which a point counts less."""
ROUNDS: Final = 40
SPREADS: Final[Mapping[str, float]] = {
    "weight_read": 0.15,
    "weight_read_bf16": 0.10,
    "fp8": 0.15,
    "bf16": 0.15,
    "overlap": 0.15,
    "kv_read": 0.15,
    "prefill_attention": 0.30,
    "all_reduce": 0.20,
    "elementwise_bytes": 0.40,
    "host_ms": 0.50,
    "host_us": 1.00,
    "host_growth": 0.20,
}
"""Spread of each factor's logarithm about its start."""
RATIO_SPREAD: Final = 0.40
US_RATIO_SPREAD: Final = 1.20
STACKS: Final = tuple(stack for stack in Stack if stack is not Stack.OTHER)
NAMES: Final = tuple(SPREADS)
UNITY: Final = StepParameters(
    **{item.name: 1.0 for item in fields(StepParameters) if item.name in SPREADS}  # type: ignore[arg-type]
)


@dataclass(frozen=True)
class Products:
    """Matrix products of like steps, in seconds at the vendor's peaks."""

    count: float
    reading: float
    arithmetic: float
    head: float
    decodes: float


@dataclass(frozen=True)
class Features:
    """A run's time in terms of the factors: the products, and what each other factor multiplies or divides."""

    run: Run
    quantised: bool
    steps: float
    products: tuple[Products, ...]
    kv_read: float
    prefill_attention: float
    all_reduce: float
    elementwise: float
    host: float

    @property
    def measured(self) -> float:
        """Logarithm of the measured time of the run."""
        point = self.run.point
        if point.kind.is_throughput:
            return math.log(self.run.tokens / point.measured)
        return math.log(point.measured / 1e3 * self.steps)


def features_of(run: Run) -> Features:
    """The features of a run."""
    point = run.point
    layout = point.layout
    model = StepModel(point.model, layout, UNITY)
    parts = [(item.count, item.work, model.parts(item.work)) for item in run.steps]
    return Features(
        run=run,
        quantised=layout.quantised,
        steps=sum(count for count, _, _ in parts),
        products=tuple(
            Products(
                count,
                model.weight_seconds,
                (work.decodes + work.prefill) * model.linear_seconds_per_row,
                (work.decodes + work.prompts) * model.head_seconds_per_row,
                work.decodes,
            )
            for count, work, _ in parts
        ),
        kv_read=sum(count * part.kv_read for count, _, part in parts),
        prefill_attention=sum(count * part.prefill_attention for count, _, part in parts),
        all_reduce=sum(count * part.all_reduce for count, _, part in parts),
        elementwise=sum(count * part.elementwise for count, _, part in parts),
        host=sum(count * model.host_seconds for count, _, _ in parts),
    )


def features_of_points(points: Sequence[Point]) -> list[Features]:
    """Features of every point; the slow part, to be done once."""
    return [features_of(run_of(point)) for point in points]


def seconds(item: Features, f: StepParameters) -> tuple[float, dict[str, float]]:
    """Time of a run, and its derivative by the logarithm of each factor."""
    stack, p = item.run.point.stack, f.overlap
    read, reached = (f.weight_read, f.fp8) if item.quantised else (f.weight_read_bf16, f.bf16)
    products = by_read = by_reached = by_overlap = sequences = by_growth = 0.0
    host_us = f.host_us_of(stack) * MICROSECOND
    for step in item.products:
        a, b = step.reading / read, step.arithmetic / reached + step.head
        ap, bp = a**p, b**p
        both = ap + bp
        time = both ** (1 / p)
        products += step.count * time
        by_read -= step.count * time * ap / both
        by_reached -= step.count * time * bp / both * (step.arithmetic / reached) / b
        slope = (ap * math.log(a) + bp * math.log(b)) / both - math.log(both) / p
        by_overlap += step.count * time * slope
        if step.decodes:
            handled = step.count * host_us * host_sequences(step.decodes, f.host_growth)
            sequences += handled
            by_growth += handled * f.host_growth * math.log(step.decodes / HOST_SEQUENCES)
    kv, attention = item.kv_read / f.kv_read, item.prefill_attention / f.prefill_attention
    reduce, element = item.all_reduce * f.all_reduce, item.elementwise * f.elementwise_bytes
    host = item.host * f.host_ms_of(stack)
    slopes = {
        "weight_read" if item.quantised else "weight_read_bf16": by_read,
        "fp8" if item.quantised else "bf16": by_reached,
        "overlap": by_overlap,
        "kv_read": -kv,
        "prefill_attention": -attention,
        "all_reduce": reduce,
        "elementwise_bytes": element,
        "host_ms": host,
        "host_us": sequences,
        "host_growth": by_growth,
        f"ratio {stack}": host,
        f"us ratio {stack}": sequences,
    }
    return products + kv + attention + reduce + element + host + sequences, slopes


def predicted(item: Features, f: StepParameters) -> float:
    """What the model says for the point's measured value: tokens/s, or ms."""
    time, _ = seconds(item, f)
    if item.run.point.kind.is_throughput:
        return item.run.tokens / time
    return time / item.steps * 1e3


@dataclass(frozen=True)
class Fit:
    """Factors, and the standard error of each one's logarithm."""

    parameters: StepParameters
    errors: Mapping[str, float]


_VARIABLES: Final = (*NAMES, *(f"ratio {s}" for s in STACKS), *(f"us ratio {s}" for s in STACKS))


def _spread(name: str) -> float:
    if name in SPREADS:
        return SPREADS[name]
    return RATIO_SPREAD if name.startswith("ratio ") else US_RATIO_SPREAD


def _parameters(logs: Mapping[str, float]) -> StepParameters:
    start = StepParameters()
    return replace(
        start,
        **{name: getattr(start, name) * math.exp(logs[name]) for name in NAMES},
        host_ratio={stack: math.exp(logs[f"ratio {stack}"]) for stack in STACKS},
        host_us_ratio={stack: math.exp(logs[f"us ratio {stack}"]) for stack in STACKS},
    )


def _loss(residuals: Sequence[float], logs: Mapping[str, float]) -> float:
    rough = sum(2 * OUTLIER**2 * (math.sqrt(1 + (r / OUTLIER) ** 2) - 1) for r in residuals)
    return rough / NOISE**2 + sum((logs[name] / _spread(name)) ** 2 for name in _VARIABLES)


def fit(items: Sequence[Features]) -> Fit:
    """Fit all factors to the points of `items`."""
    logs = dict.fromkeys(_VARIABLES, 0.0)
    damping = 1e-3
    size = len(_VARIABLES)
    places = {name: index for index, name in enumerate(_VARIABLES)}
    targets = [item.measured for item in items]
    evaluated = [seconds(item, _parameters(logs)) for item in items]
    residuals = [math.log(time) - target for (time, _), target in zip(evaluated, targets, strict=True)]
    loss = _loss(residuals, logs)
    normal: list[list[float]] = []
    for _ in range(ROUNDS):
        normal = [[0.0] * size for _ in range(size)]
        gradient = [0.0] * size
        for (time, slopes), residual in zip(evaluated, residuals, strict=True):
            weight = 1 / math.sqrt(1 + (residual / OUTLIER) ** 2) / NOISE**2
            row = [(places[name], slope / time) for name, slope in slopes.items()]
            for i, a in row:
                gradient[i] += weight * a * residual
                for j, b in row:
                    normal[i][j] += weight * a * b
        for index, name in enumerate(_VARIABLES):
            normal[index][index] += 1 / _spread(name) ** 2
            gradient[index] += logs[name] / _spread(name) ** 2
        improved = False
        while damping < 1e6:
            damped = [[v * (1 + damping) if i == j else v for j, v in enumerate(r)] for i, r in enumerate(normal)]
            step = solve(damped, [-value for value in gradient])
            trial = {name: logs[name] + step[index] for name, index in places.items()}
            tried = [seconds(item, _parameters(trial)) for item in items]
            off = [math.log(time) - target for (time, _), target in zip(tried, targets, strict=True)]
            better = _loss(off, trial)
            if better < loss:
                improved = loss - better > 1e-6 * loss
                logs, evaluated, residuals, loss = trial, tried, off, better
                damping /= 5
                break
            damping *= 5
        if not improved:
            break
    return Fit(_parameters(logs), _errors(normal))


def _errors(normal: Sequence[Sequence[float]]) -> dict[str, float]:
    """Standard errors: square roots of the diagonal of the inverse."""
    size = len(normal)
    found: dict[str, float] = {}
    for index, name in enumerate(_VARIABLES):
        unit = [1.0 if i == index else 0.0 for i in range(size)]
        found[name] = math.sqrt(max(0.0, solve(normal, unit)[index]))
    return found


def solve(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solve a system of linear equations by elimination with pivots. Raises ZeroDivisionError when it is singular."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(rows[i][column]))
        rows[column], rows[pivot] = rows[pivot], rows[column]
        lead = rows[column]
        for below in rows[column + 1 :]:
            share = below[column] / lead[column]
            if share:
                for k in range(column, size + 1):
                    below[k] -= share * lead[k]
    solution = [0.0] * size
    for index in range(size - 1, -1, -1):
        row = rows[index]
        known = sum(row[k] * solution[k] for k in range(index + 1, size))
        solution[index] = (row[size] - known) / row[index]
    return solution
