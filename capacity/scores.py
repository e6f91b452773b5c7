"""How far off the step model is, on points that the fit never saw."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from srvmod.capacity.fitting import Features, features_of_points, fit, predicted
from srvmod.capacity.parameters import ErrorBand, StepParameters
from srvmod.capacity.points import Point

FOLDS = 10
SPLIT_SEEDS = (1, 2)


@dataclass(frozen=True)
class Scored:
    """A point, and what a model that hadn't seen it said."""

    point: Point
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.point.measured - 1


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie, interpolated."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def band(scored: Sequence[Scored]) -> ErrorBand | None:
    """Errors of scored points; None without any."""
    if not scored:
        return None
    sizes = [abs(item.error) for item in scored]
    worst = max(scored, key=lambda item: abs(item.error))
    ratios = [item.point.measured / item.predicted for item in scored]
    return ErrorBand(
        points=len(scored),
        mape=sum(sizes) / len(sizes),
        median=quantile(sizes, 0.5),
        p90=quantile(sizes, 0.9),
        worst=abs(worst.error),
        worst_id=worst.point.id,
        low=quantile(ratios, 0.1),
        high=quantile(ratios, 0.9),
    )


def bands(scored: Sequence[Scored]) -> dict[str, ErrorBand | None]:
    """Errors of all points, of throughput, and of inter-token latency at given concurrency."""
    return {
        "all": band(scored),
        "throughput": band([item for item in scored if item.point.kind.is_throughput]),
        "itl": band([item for item in scored if not item.point.kind.is_throughput]),
    }


def as_figures(found: dict[str, ErrorBand | None]) -> dict[str, Any]:
    """Bands as JSON, shares rounded."""
    return {
        name: None
        if errors is None
        else {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(errors).items()}
        for name, errors in found.items()
    }


def leave_one_family_out(items: Sequence[Features]) -> list[Scored]:
    """Each family (a source's points of one stack) scored by a fit on all the others."""
    scored: list[Scored] = []
    for family in sorted({item.run.point.family for item in items}):
        rest = fit([item for item in items if item.run.point.family != family]).parameters
        scored += score_with(rest, [item for item in items if item.run.point.family == family])
    return scored


def random_splits(items: Sequence[Features]) -> list[Scored]:
    """Each point scored by a fit on nine tenths that don't hold it, for two random divisions into ten."""
    scored: list[Scored] = []
    for seed in SPLIT_SEEDS:
        order = list(range(len(items)))
        random.Random(seed).shuffle(order)
        for fold in range(FOLDS):
            held = set(order[fold::FOLDS])
            rest = fit([items[index] for index in order if index not in held]).parameters
            scored += score_with(rest, [items[index] for index in sorted(held)])
    return scored


def score_with(parameters: StepParameters, items: Sequence[Features]) -> list[Scored]:
    """Points scored with given factors."""
    return [Scored(item.run.point, predicted(item, parameters)) for item in items]


def score_unseen(
    points: Sequence[Point], known: Sequence[Point], refit: Callable[[Sequence[Point]], StepParameters]
) -> tuple[list[Scored], list[str]]:
    """Score `points` by a fit on those of `known` that aren't among them, and name what had to be left out.

    A point is the same when its id or all that was measured is.
    """
    ids = {point.id for point in points}
    facts = {_facts(point) for point in points}
    kept = [point for point in known if point.id not in ids and _facts(point) not in facts]
    left = [point.id for point in known if point not in kept]
    parameters = refit(kept)
    return score_with(parameters, features_of_points(points)), left


def _facts(point: Point) -> tuple[object, ...]:
    return (
        point.kind,
        point.stack,
        point.gpu,
        point.tensor_parallel_size,
        point.replicas,
        point.prompt_tokens,
        point.output_tokens,
        point.measured,
    )
