"""How far off the step model is, on points that the fit never saw."""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from srvmod.capacity.first_token import first_token_of, fit_waiting
from srvmod.capacity.fitting import Features, features_of_points, fit, predicted
from srvmod.capacity.parameters import ErrorBand, StepParameters, Waiting
from srvmod.capacity.points import Point

FOLDS = 10
SPLIT_SEEDS = (1, 2)


class Quantity(StrEnum):
    """What was measured and predicted. A point of some kind has one of the first two, and perhaps the others."""

    THROUGHPUT = "throughput"
    ITL = "itl"
    TTFT = "ttft"
    """Median time to first token; the mean where a source tells only that."""
    TTFT_P99 = "ttftP99"


@dataclass(frozen=True)
class Scored:
    """A measured value of a point, and what a model that hadn't seen it said."""

    point: Point
    quantity: Quantity
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, less one."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True)
class Fitted:
    """Everything that is fitted, from the same points."""

    parameters: StepParameters
    waiting: Waiting


def fit_all(items: Sequence[Features]) -> Fitted:
    """Fit step times, then the waits before a first token by them. Raises ValueError without any of these."""
    parameters = fit(items).parameters
    return Fitted(parameters, waiting_of(items, parameters))


def waiting_of(items: Sequence[Features], parameters: StepParameters) -> Waiting:
    """Fit the waits before a first token, with given step times."""
    found = [first_token_of(item, parameters) for item in items]
    return fit_waiting([item for item in found if item is not None])


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the values lie, interpolated between the two nearest; NaN for none."""
    if not values:
        return math.nan
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def band(scored: Sequence[Scored]) -> ErrorBand | None:
    """Errors of scored values; None without any."""
    if not scored:
        return None
    sizes = [abs(item.error) for item in scored]
    worst = max(scored, key=lambda item: abs(item.error))
    ratios = [item.measured / item.predicted for item in scored]
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


Bands = Mapping[Quantity, ErrorBand | None]


def bands(scored: Sequence[Scored]) -> Bands:
    """Errors by what was measured; None where nothing was."""
    return {quantity: band([item for item in scored if item.quantity is quantity]) for quantity in Quantity}


def as_figures(found: Bands) -> dict[str, Any]:
    """Bands as JSON, shares rounded."""
    return {
        quantity.value: None
        if errors is None
        else {key: round(value, 4) if isinstance(value, float) else value for key, value in asdict(errors).items()}
        for quantity, errors in found.items()
    }


def leave_one_family_out(items: Sequence[Features]) -> list[Scored]:
    """Each family (a source's points of one stack) scored by a fit on all the others."""
    scored: list[Scored] = []
    for family in sorted({item.run.point.family for item in items}):
        rest = fit_all([item for item in items if item.run.point.family != family])
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
            rest = fit_all([items[index] for index in order if index not in held])
            scored += score_with(rest, [items[index] for index in sorted(held)])
    return scored


def score_with(fitted: Fitted, items: Sequence[Features]) -> list[Scored]:
    """Everything that was measured of some points, scored with a given fit."""
    return [scored for item in items for scored in _scored(fitted, item)]


def _scored(fitted: Fitted, item: Features) -> Iterator[Scored]:
    point = item.run.point
    main = Quantity.THROUGHPUT if point.kind.is_throughput else Quantity.ITL
    yield Scored(point, main, point.measured, predicted(item, fitted.parameters))
    first = first_token_of(item, fitted.parameters)
    if first is None:
        return
    for quantity, measured, said in (
        (Quantity.TTFT, point.ttft_ms, first.median(fitted.waiting)),
        (Quantity.TTFT_P99, point.ttft_p99_ms, first.p99(fitted.waiting)),
    ):
        if measured is not None:
            yield Scored(point, quantity, measured, said)


def score_unseen(
    points: Sequence[Point], known: Sequence[Point], refit: Callable[[Sequence[Point]], Fitted]
) -> tuple[list[Scored], list[str]]:
    """Score `points` by a fit on those of `known` that aren't among them, and name what had to be left out.

    A point is the same when its id or all that was measured is.
    """
    ids = {point.id for point in points}
    facts = {_facts(point) for point in points}
    kept = [point for point in known if point.id not in ids and _facts(point) not in facts]
    left = [point.id for point in known if point not in kept]
    return score_with(refit(kept), features_of_points(points)), left


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
