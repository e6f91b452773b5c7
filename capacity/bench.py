"""`srvmod bench capacity`: how far off the model is on points that the fit never saw, against the goals."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from statistics import median
from typing import Any, Final

from srvmod.capacity.fitting import features_of_points
from srvmod.capacity.layout import Traffic
from srvmod.capacity.parameters import calibration
from srvmod.capacity.planner import node_range, plan
from srvmod.capacity.points import Point
from srvmod.capacity.runs import kv_share_of
from srvmod.capacity.scores import (
    Bands,
    Fitted,
    Quantity,
    as_figures,
    bands,
    fit_all,
    leave_one_family_out,
    random_splits,
    score_unseen,
)
from srvmod.capacity.table import Unscored
from srvmod.contract import LLAMA_3_70B, OUTPUT_TOKENS_PER_SECOND, SESSIONS
from srvmod.contract.bench import BenchResult

GOAL_MAPE: Final = 0.05
GOAL_P90: Final = 0.12
GOAL_PLAN_MS: Final = 50.0
JUDGED: Final = (Quantity.THROUGHPUT, Quantity.ITL)
"""What the goals are for; the time to first token is told beside them."""
PLANS: Final = 20


def bench_committed(points: Sequence[Point]) -> BenchResult:
    """Cross-validate on the committed points: random splits decide, leave-one-family-out is told beside it."""
    items = features_of_points(points)
    split = bands(random_splits(items))
    families = bands(leave_one_family_out(items))
    figures = {
        "points": len(points),
        "randomSplits": as_figures(split),
        "leaveOneFamilyOut": as_figures(families),
        "beyondKvCache": beyond_kv_cache(points),
    }
    return _result(figures, split)


def bench_points(points: Sequence[Point], known: Sequence[Point], unscored: Sequence[Unscored] = ()) -> BenchResult:
    """Score `points`. Those that the committed calibration was fitted on are taken out of the fit first.

    Only the points of the kinds that are there decide about the goals. `unscored` are the file's other rows.
    """

    def refit(kept: Sequence[Point]) -> Fitted:
        if len(kept) == len(known):
            return Fitted(calibration().parameters, calibration().waiting)
        return fit_all(features_of_points(kept))

    scored, left = score_unseen(points, known, refit)
    found = bands(scored)
    figures: dict[str, Any] = {
        "rows": len(points) + len(unscored),
        "points": len(points),
        "unscored": [asdict(row) for row in unscored],
        "fittedPoints": len(known) - len(left),
        "takenOutOfTheFit": left,
        "scores": as_figures(found),
        "beyondKvCache": beyond_kv_cache(points),
        "predictions": [
            {
                "id": item.point.id,
                "quantity": item.quantity.value,
                "measured": item.measured,
                "predicted": round(item.predicted, 3),
                "error": round(item.error, 4),
            }
            for item in scored
        ],
    }
    return _result(figures, found)


def _result(figures: dict[str, Any], found: Bands) -> BenchResult:
    present = [band for quantity in JUDGED if (band := found[quantity]) is not None]
    took = plan_ms()
    accurate = all(band.mape <= GOAL_MAPE and band.p90 <= GOAL_P90 for band in present)
    goals = {"mape": GOAL_MAPE, "p90": GOAL_P90, "planMs": GOAL_PLAN_MS}
    return BenchResult("capacity", {**figures, "planMs": took}, goals, accurate and took <= GOAL_PLAN_MS)


def beyond_kv_cache(points: Sequence[Point]) -> list[dict[str, Any]]:
    """Points whose sequences, by Little's law, need more KV cache than their engine has.

    Their errors are told with the others', but they say nothing about an engine that decodes so many at once: there
    is none. The planner answers "saturated" for them.
    """
    found = [(point, kv_share_of(point)) for point in points if not point.kind.is_throughput]
    return [
        {"id": point.id, "sequences": round(point.concurrency), "kvShare": round(share, 3)}
        for point, share in found
        if share > 1
    ]


def plan_ms() -> float:
    """Processor time of a plan of the specification's load with its range of nodes, ms; the median of some."""
    traffic = Traffic(SESSIONS.value, 512, 512, tokens_per_second=OUTPUT_TOKENS_PER_SECOND.value)
    took: list[float] = []
    for _ in range(PLANS):
        before = time.process_time()
        node_range(plan(traffic, LLAMA_3_70B), LLAMA_3_70B)
        took.append((time.process_time() - before) * 1e3)
    return round(median(took), 2)
