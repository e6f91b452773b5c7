"""Histograms as plain arrays that take many equal observations at once, since one step gives hundreds of them."""

import time
from bisect import bisect_left
from collections.abc import Iterable

from prometheus_client.core import HistogramMetricFamily
from prometheus_client.utils import floatToGoString


class Histogram:
    """Counts per bucket; `observe` takes the same value any number of times."""

    __slots__ = ("bounds", "counts", "created", "total")

    def __init__(self, bounds: Iterable[float]) -> None:
        self.bounds = [*bounds]
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0
        self.created = time.time()

    def observe(self, value: float, times: int = 1) -> None:
        """Record `times` observations of `value`; a bound belongs to its own bucket, as in Prometheus."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def add_to(self, family: HistogramMetricFamily, labels: list[str]) -> None:
        """Render into a metric family, cumulated, with the `_created` time."""
        cumulated = 0
        rows: list[tuple[str, float]] = []
        for bound, count in zip([*self.bounds, float("inf")], self.counts, strict=True):
            cumulated += count
            rows.append((floatToGoString(bound), cumulated))
        family.add_metric(labels, rows, self.total)
        names = dict(zip(family._labelnames, labels, strict=True))
        family.add_sample(f"{family.name}_created", names, self.created)


class Run:
    """Observations of times since a moment, of which many in a row are equal: counted first, then observed at once."""

    __slots__ = ("_histogram", "_now", "since", "times")

    def __init__(self, histogram: Histogram, now: float) -> None:
        self._histogram = histogram
        self._now = now
        self.since = -1.0
        self.times = 0

    def begin(self, since: float) -> None:
        """Another moment than before."""
        self.end()
        self.since = since
        self.times = 1

    def end(self) -> None:
        """Observe what was counted."""
        if self.times:
            self._histogram.observe(self._now - self.since, self.times)
        self.times = 0
