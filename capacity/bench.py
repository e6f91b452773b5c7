"""`srvmod bench capacity`: how far off the model is on points that the fit never saw, against the goals."""

from collections.abc import Sequence
from typing import Any, Final

from srvmod.capacity.fitting import features_of_points, fit
from srvmod.capacity.parameters import ErrorBand, StepParameters, calibration
from srvmod.capacity.points import Point
from srvmod.capacity.scores import as_figures, bands, leave_one_family_out, random_splits, score_unseen
from srvmod.contract.bench import BenchResult

GOAL_MAPE: Final = 0.05
GOAL_P90: Final = 0.12


def bench_committed(points: Sequence[Point]) -> BenchResult:
    """Cross-validate on the committed points: random splits decide, leave-one-family-out is told beside it."""
    items = features_of_points(points)
    split = bands(random_splits(items))
    families = bands(leave_one_family_out(items))
    figures = {
        "points": len(points),
        "randomSplits": as_figures(split),
        "leaveOneFamilyOut": as_figures(families),
    }
    return _result(figures, split)


def bench_points(points: Sequence[Point], known: Sequence[Point]) -> BenchResult:
    """Score `points`. Those that the committed calibration was fitted on are taken out of the fit first.

    Only the points of the kinds that are there decide about the goals.
    """

    def refit(kept: Sequence[Point]) -> StepParameters:
        whole = len(kept) == len(known)
        return calibration().parameters if whole else fit(features_of_points(kept)).parameters

    scored, left = score_unseen(points, known, refit)
    found = bands(scored)
    figures: dict[str, Any] = {
        "points": len(points),
        "fittedPoints": len(known) - len(left),
        "takenOutOfTheFit": left,
        "scores": as_figures(found),
        "predictions": [
            {
                "id": item.point.id,
                "measured": item.point.measured,
                "predicted": round(item.predicted, 3),
                "error": round(item.error, 4),
            }
            for item in scored
        ],
    }
    return _result(figures, found)


def _result(figures: dict[str, Any], found: dict[str, ErrorBand | None]) -> BenchResult:
    present = [band for name, band in found.items() if band is not None and name != "all"]
    met = all(band.mape <= GOAL_MAPE and band.p90 <= GOAL_P90 for band in present)
    return BenchResult("capacity", figures, {"mape": GOAL_MAPE, "p90": GOAL_P90}, met)
