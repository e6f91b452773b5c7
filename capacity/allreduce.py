"""Time of an all-reduce over NVLink, interpolated in a table measured on H100 (capacity/data/README.md)."""

import csv
import math
from bisect import bisect_right
from functools import lru_cache
from importlib.resources import files

from srvmod.capacity.stacks import Stack
from srvmod.contract import H100, Seconds, to_seconds
from srvmod.contract.units import Milliseconds

Curve = tuple[tuple[int, ...], tuple[float, ...]]
"""Message sizes in bf16 elements, rising, and the latency in ms at each."""


@lru_cache(maxsize=1)
def _table() -> dict[tuple[str, int], Curve]:
    text = (files("srvmod.capacity") / "data" / "allreduce-h100.csv").read_text(encoding="utf-8")
    points: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for row in csv.DictReader(text.splitlines()):
        key = (row["framework"], int(row["gpus"]))
        points.setdefault(key, []).append((int(row["message_size_elems"]), float(row["latency_ms"])))
    return {
        key: (tuple(size for size, _ in sorted(curve)), tuple(ms for _, ms in sorted(curve)))
        for key, curve in points.items()
    }


def measured_sizes(stack: Stack) -> tuple[int, ...]:
    """Numbers of GPUs for which the table has a curve."""
    return tuple(sorted(gpus for owner, gpus in _table() if owner == stack.all_reduce_table))


def all_reduce(elements: float, gpus: int, stack: Stack, nvlink_gb_per_second: float | None = None) -> Seconds:
    """Time to all-reduce `elements` bf16 numbers over `gpus` GPUs of one NVLink domain.

    Between measured sizes the logarithms are interpolated; below the first the latency is flat, above the last it
    grows with the size. With faster links than H100's a message takes as long as a smaller one: bandwidth scales,
    the latency of small messages doesn't. One GPU needs none. Raises KeyError for a number of GPUs that wasn't
    measured.
    """
    if gpus == 1:
        return Seconds(0.0)
    sizes, latencies = _table()[stack.all_reduce_table, gpus]
    if nvlink_gb_per_second:
        elements *= H100.nvlink_gb_per_second / nvlink_gb_per_second
    if elements <= sizes[0]:
        return to_seconds(Milliseconds(latencies[0]))
    if elements >= sizes[-1]:
        return to_seconds(Milliseconds(latencies[-1] * elements / sizes[-1]))
    low = bisect_right(sizes, elements) - 1
    share = math.log(elements / sizes[low]) / math.log(sizes[low + 1] / sizes[low])
    return to_seconds(Milliseconds(latencies[low] * (latencies[low + 1] / latencies[low]) ** share))
