"""Bucket bounds of vLLM 0.33.0's histograms (vllm/v1/metrics/buckets.py) and its rule for replacing them."""

import json
import math
from itertools import pairwise
from typing import Any, Final

from srvmod_engine.errors import ConfigError

DEFAULTS: Final[dict[str, tuple[float, ...]]] = {
    "request_latency": (0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
                        240.0, 480.0, 960.0, 1920.0, 7680.0),
    "time_to_first_token": (0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
                            10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0),
    "inter_token_latency": (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5,
                            10.0, 20.0, 40.0, 80.0),
    "iteration_tokens": (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384),
    "request_params_n": (1, 2, 5, 10, 20),
    "request_num_preemptions": (1, 2, 3, 4, 5, 10, 20),
    "kv_cache_residency": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300,
                           600, 1200, 1800),
}  # fmt: skip

FAMILIES: Final = frozenset(DEFAULTS) | {"request_tokens"}


def one_two_five(maximum: int) -> tuple[float, ...]:
    """1, 2, 5, 10, 20, 50 … up to `maximum`: the token counts' buckets follow --max-model-len."""
    out: list[float] = []
    scale = 1
    while True:
        for mantissa in (1, 2, 5):
            if mantissa * scale > maximum:
                return tuple(out)
            out.append(mantissa * scale)
        scale *= 10


def parse_custom(text: str | None) -> dict[str, tuple[float, ...]]:
    """Read --custom-histogram-buckets. Raises ConfigError with vLLM's reasons."""
    if text is None:
        return {}
    option = "--custom-histogram-buckets"
    try:
        value: Any = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"{option}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{option}: expected an object from family to list of bounds, got {text!r}")
    out: dict[str, tuple[float, ...]] = {}
    for family, bounds in value.items():
        if family not in FAMILIES:
            raise ConfigError(f"{option}: unknown bucket family {family!r}; known families: {sorted(FAMILIES)}")
        if not isinstance(bounds, list) or not bounds:
            raise ConfigError(f"{option}[{family!r}]: bucket list must be a list and not empty, got {bounds!r}")
        for bound in bounds:
            if isinstance(bound, bool) or not isinstance(bound, int | float):
                raise ConfigError(f"{option}[{family!r}]: bound {bound!r} must be a number")
            if not math.isfinite(bound) or bound <= 0:
                raise ConfigError(f"{option}[{family!r}]: bound {bound!r} must be finite and greater than 0")
        if any(low >= high for low, high in pairwise(bounds)):
            raise ConfigError(f"{option}[{family!r}]: bounds {bounds} must be strictly increasing")
        out[family] = tuple(float(bound) for bound in bounds)
    return out


def bounds_for(family: str, max_model_len: int, custom: dict[str, tuple[float, ...]]) -> tuple[float, ...]:
    """Bounds of one family; a custom list replaces the default whole."""
    if family in custom:
        return custom[family]
    return one_two_five(max_model_len) if family == "request_tokens" else DEFAULTS[family]
