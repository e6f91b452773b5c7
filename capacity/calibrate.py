"""Refits the step model from the committed measurements: `python -m srvmod.capacity.calibrate [--check]`.

Writes capacity/data/parameters.json: every factor with its standard error and meaning, the errors on points that the
fit hadn't seen, and the digest of the data that it came from.
"""

import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any, Final

from srvmod.capacity.fitting import NAMES, SPREADS, STACKS, Fit, features_of_points, fit
from srvmod.capacity.parameters import FILE, StepParameters, Waiting
from srvmod.capacity.scores import as_figures, bands, leave_one_family_out, random_splits, waiting_of
from srvmod.capacity.table import MEASUREMENTS, committed_text, read_points

PLACE: Final = Path(__file__).parent / "data" / FILE
DIGITS: Final = 5
CLOSE: Final = 1e-3


def digest(text: str) -> str:
    """SHA-256 of the data a fit came from."""
    return hashlib.sha256(text.encode()).hexdigest()


def document(text: str) -> dict[str, Any]:
    """Fit the points of `text` and say everything about it."""
    points = read_points(text)
    items = features_of_points(points)
    fitted = fit(items)
    counts = {stack: sum(point.stack is stack for point in points) for stack in STACKS}
    return {
        "about": "Factors of the step model; written by python -m srvmod.capacity.calibrate, not by hand.",
        "data": {
            "file": MEASUREMENTS,
            "sha256": digest(text),
            "points": len(points),
            "sources": sorted({point.url for point in points}),
        },
        "method": "damped Gauss-Newton on log(predicted/measured), priors on every factor, outliers weighted down",
        "parameters": {name: _entry(fitted, name) for name in NAMES},
        "stacks": {
            stack.value: {
                "hostRatio": _rounded(fitted.parameters.host_ratio[stack]),
                "hostRatioError": _rounded(fitted.errors[f"ratio {stack}"]),
                "hostUsRatio": _rounded(fitted.parameters.host_us_ratio[stack]),
                "hostUsRatioError": _rounded(fitted.errors[f"us ratio {stack}"]),
                "points": counts[stack],
            }
            for stack in STACKS
        },
        "firstToken": _first_token(waiting_of(items, fitted.parameters)),
        "errors": {
            "leaveOneFamilyOut": as_figures(bands(leave_one_family_out(items))),
            "randomSplits": as_figures(bands(random_splits(items))),
        },
    }


def _first_token(waiting: Waiting) -> dict[str, Any]:
    """Waits before a first token, in mean steps."""
    return {
        "waitSteps": _rounded(waiting.steps),
        "spread": _rounded(waiting.spread),
        "stackWaitSteps": {stack.value: _rounded(value) for stack, value in waiting.stack_steps.items()},
        "stackSpread": {stack.value: _rounded(value) for stack, value in waiting.stack_spread.items()},
    }


def _entry(fitted: Fit, name: str) -> dict[str, float]:
    """A factor: its value, the standard error of its logarithm, and where it started."""
    return {
        "value": _rounded(float(getattr(fitted.parameters, name))),
        "logError": _rounded(fitted.errors[name]),
        "start": float(getattr(StepParameters(), name)),
        "startSpread": SPREADS[name],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")


def differences(kept: dict[str, Any], made: dict[str, Any]) -> list[str]:
    """What differs between two calibrations by more than rounding."""
    found: list[str] = []
    if kept["data"]["sha256"] != made["data"]["sha256"]:
        found.append(f"{MEASUREMENTS} isn't the data of {FILE}")
    for name in NAMES:
        before, now = kept["parameters"][name]["value"], made["parameters"][name]["value"]
        if not math.isclose(before, now, rel_tol=CLOSE):
            found.append(f"{name} is {before}, refitted {now}")
    for name in ("waitSteps", "spread"):
        before, now = kept["firstToken"][name], made["firstToken"][name]
        if not math.isclose(before, now, rel_tol=CLOSE):
            found.append(f"{name} is {before}, refitted {now}")
    return found


def main() -> int:
    """Write the calibration, or compare it with the committed one. Returns the exit code."""
    made = document(committed_text())
    if "--check" in sys.argv[1:]:
        found = differences(json.loads(PLACE.read_text(encoding="utf-8")), made)
        print("\n".join(found) or "as calibrated")
        return 1 if found else 0
    PLACE.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
    for method, errors in made["errors"].items():
        for what, figures in errors.items():
            if figures is not None:
                shown = {key: figures[key] for key in ("points", "mape", "median", "p90", "worst", "worst_id")}
                print(method, what, shown)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
