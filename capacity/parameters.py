"""Factors of the step model: what the calibration found, read from capacity/data/parameters.json."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final

from srvmod.capacity.stacks import Stack
from srvmod.contract import Milliseconds

FILE: Final = "parameters.json"
HOST_SEQUENCES: Final = 50.0
"""Decoding sequences at which `host_us` is what each costs; a convention, so that it hardly moves with the exponent."""


@dataclass(frozen=True)
class StepParameters:
    """Factors of the step model. The defaults are where the fit starts and what it is drawn to without data.

    Shares are of the vendor's peak. `host_ms` and `host_us` are the mean over stacks; `host_ratio` and
    `host_us_ratio` say how much of it a stack needs (1 for a stack without points).
    """

    weight_read: float = 0.65
    """Share of memory bandwidth when reading quantised weights."""
    weight_read_bf16: float = 0.82
    fp8: float = 0.65
    """Share of peak arithmetic in large matrix products with quantised weights."""
    bf16: float = 0.68
    overlap: float = 3.0
    """Exponent of the smooth maximum of reading weights and computing with them; more is sharper."""
    kv_read: float = 0.75
    """Share of memory bandwidth when reading the KV cache."""
    prefill_attention: float = 0.50
    """Share of peak bf16 arithmetic in attention over prompts."""
    all_reduce: float = 1.0
    """Times the measured table."""
    elementwise_bytes: float = 20e6
    """Bytes moved per token by norms, activations, quantisation and rotary embedding of an 80-layer model."""
    host_ms: float = 5.0
    """Host and launch time of every step, ms."""
    host_us: float = 20.0
    """More of it for each decoding sequence, microseconds, with `HOST_SEQUENCES` of them."""
    host_growth: float = 0.75
    """Exponent with which that part grows with the sequences: below 1, since a step's lists are handled as arrays."""
    host_ratio: Mapping[Stack, float] = field(default_factory=dict[Stack, float])
    host_us_ratio: Mapping[Stack, float] = field(default_factory=dict[Stack, float])

    def host_ms_of(self, stack: Stack) -> Milliseconds:
        """Host time per step of a stack."""
        return Milliseconds(self.host_ms * self.host_ratio.get(stack, 1.0))

    def host_us_of(self, stack: Stack) -> float:
        """Host time per step and sequence of a stack, microseconds."""
        return self.host_us * self.host_us_ratio.get(stack, 1.0)


@dataclass(frozen=True)
class Waiting:
    """What requests wait for their first token beyond the steps of their own prompt, in mean steps of the engine.

    `spread` is the standard deviation of the wait's logarithm. Stacks without points have what all have together.
    """

    steps: float
    """The median."""
    spread: float
    stack_steps: Mapping[Stack, float] = field(default_factory=dict[Stack, float])
    stack_spread: Mapping[Stack, float] = field(default_factory=dict[Stack, float])

    def steps_of(self, stack: Stack) -> float:
        """The median wait of a stack."""
        return self.stack_steps.get(stack, self.steps)

    def spread_of(self, stack: Stack) -> float:
        """The spread of a stack."""
        return self.stack_spread.get(stack, self.spread)

    def quantile(self, stack: Stack, deviations: float) -> float:
        """The wait `deviations` standard deviations above the median."""
        return self.steps_of(stack) * math.exp(deviations * self.spread_of(stack))


@dataclass(frozen=True)
class ErrorBand:
    """Errors on points that a fit didn't see. `low` and `high` are what measured/predicted lay between in 80 %."""

    points: int
    mape: float
    median: float
    p90: float
    worst: float
    worst_id: str
    low: float
    high: float


@dataclass(frozen=True)
class Calibration:
    """What the calibration left: factors, and how far off they were on points that it hadn't seen."""

    parameters: StepParameters
    throughput: ErrorBand
    """Leave one family out: the honest error for a stack or release that wasn't measured."""
    itl: ErrorBand
    waiting: Waiting
    ttft: ErrorBand
    """Of the median time to first token."""
    ttft_p99: ErrorBand
    """Of its 99th percentile: what the tail of a plan is as far off as."""
    fitted_points: int
    data_sha256: str


def _factors(document: Mapping[str, Any]) -> StepParameters:
    plain = {name: float(entry["value"]) for name, entry in document["parameters"].items()}
    return StepParameters(
        **plain,
        host_ratio={Stack(name): float(entry["hostRatio"]) for name, entry in document["stacks"].items()},
        host_us_ratio={Stack(name): float(entry["hostUsRatio"]) for name, entry in document["stacks"].items()},
    )


def _waiting(document: Mapping[str, Any]) -> Waiting:
    return Waiting(
        steps=float(document["waitSteps"]),
        spread=float(document["spread"]),
        stack_steps={Stack(name): float(value) for name, value in document["stackWaitSteps"].items()},
        stack_spread={Stack(name): float(value) for name, value in document["stackSpread"].items()},
    )


@lru_cache(maxsize=1)
def calibration() -> Calibration:
    """The committed calibration. `python -m srvmod.capacity.calibrate` makes it anew."""
    text = (files("srvmod.capacity") / "data" / FILE).read_text(encoding="utf-8")
    document: Mapping[str, Any] = json.loads(text)
    errors = document["errors"]["leaveOneFamilyOut"]
    return Calibration(
        parameters=_factors(document),
        throughput=ErrorBand(**errors["throughput"]),
        itl=ErrorBand(**errors["itl"]),
        waiting=_waiting(document["firstToken"]),
        ttft=ErrorBand(**errors["ttft"]),
        ttft_p99=ErrorBand(**errors["ttftP99"]),
        fitted_points=document["data"]["points"],
        data_sha256=document["data"]["sha256"],
    )
