"""Measured points: rows of a CSV of published throughput and latency, checked and given types.

Columns: id, kind (tput, offline, online, b1), engine, version, gpu, tp, dp, w and kv (bytes per weight and per KV
element), isl and osl (mean prompt and output tokens), out_tok_s, itl_ms, itl_p99_ms, ttft_ms, ttft_p99_ms, n_req,
max_b, note, url. The last seven may be empty, and the measured value that a kind doesn't have.
"""

import csv
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from pathlib import Path

from srvmod.capacity.layout import Layout
from srvmod.capacity.stacks import Stack, stack_of
from srvmod.contract import GPUS, INSTANCE_TYPES, LLAMA_2_70B, LLAMA_3_1_70B, KvCacheDtype, ModelShape

MEASUREMENTS = "llm-serving-measurements.csv"
COLUMNS = ("id", "kind", "engine", "version", "gpu", "tp", "dp", "w", "kv", "isl", "osl", "out_tok_s", "itl_ms", "url")
"""Columns that a file must have; the others may be missing."""
LARGEST = 1e7


class PointsError(ValueError):
    """A file of points that can't be scored; the text names every line and column that is wrong."""


class Kind(StrEnum):
    """How a point was measured."""

    THROUGHPUT = "tput"
    """All requests offered at once, output tokens per second over the whole run."""
    OFFLINE = "offline"
    """The same with a data set's own lengths."""
    ONLINE = "online"
    """Requests arrive at a rate; mean inter-token latency at the concurrency that rate and latency give."""
    BATCH_1 = "b1"
    """One request at a time, mean inter-token latency."""

    @property
    def is_throughput(self) -> bool:
        """Whether the measured value is tokens per second, not ms."""
        return self in (Kind.THROUGHPUT, Kind.OFFLINE)


@dataclass(frozen=True)
class Point:
    """One published measurement. `measured` is tokens/s of the whole system, or ms between tokens."""

    id: str
    kind: Kind
    stack: Stack
    version: str
    gpu: str
    tensor_parallel_size: int
    replicas: int
    weight_bytes: float
    kv_bytes: int
    prompt_tokens: float
    output_tokens: float
    tokens_per_second: float | None
    itl_ms: float | None
    ttft_ms: float | None
    requests: int | None
    most_sequences: int | None
    url: str

    @property
    def measured(self) -> float:
        """The value that a prediction is compared with."""
        value = self.tokens_per_second if self.kind.is_throughput else self.itl_ms
        assert value is not None  # read_points refuses points without it
        return value

    @property
    def model(self) -> ModelShape:
        """MLPerf's llama2-70b, or the shape that Llama 3, 3.1 and 3.3 share."""
        return LLAMA_2_70B if "llama2-70b" in self.url.lower() else LLAMA_3_1_70B

    @property
    def layout(self) -> Layout:
        """One engine of the measured system."""
        instance = next(item for item in INSTANCE_TYPES.values() if item.gpu.name == self.gpu)
        return Layout(
            instance=instance,
            tensor_parallel_size=self.tensor_parallel_size,
            engines_per_node=1,
            kv_cache_dtype=KvCacheDtype.FP8 if self.kv_bytes == 1 else KvCacheDtype.BF16,
            weight_bytes_per_element=self.weight_bytes,
            stack=self.stack,
        )

    @property
    def family(self) -> str:
        """Points that share a source and a stack: what leave-one-family-out leaves out together."""
        source = self.id.split("-")[0].split(" ")[0]
        if self.version.startswith("mlperf"):
            source = "mlperf"
        return f"{source}/{self.stack.value}"

    @property
    def concurrency(self) -> float:
        """Decoding sequences per engine: one, or by Little's law from rate and latency."""
        if self.kind is Kind.BATCH_1:
            return 1.0
        assert self.tokens_per_second is not None
        assert self.itl_ms is not None
        return self.tokens_per_second / self.replicas * self.itl_ms / 1e3


class _Row:
    """Reads the fields of one row and collects what is wrong with them."""

    def __init__(self, row: Mapping[str, str | None], line: int, problems: list[str]) -> None:
        self.row, self.line, self.problems = row, line, problems

    def text(self, column: str) -> str:
        return (self.row.get(column) or "").strip()

    def wrong(self, column: str, allowed: str) -> None:
        self.problems.append(f"line {self.line}, {column} = {self.text(column)!r}; allowed: {allowed}")

    def number(self, column: str, allowed: str, ok: Callable[[float], bool], default: float | None = None) -> float:
        text = self.text(column)
        if not text and default is not None:
            return default
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and ok(value)):
            self.wrong(column, allowed)
            return 1.0
        return value

    def positive(self, column: str) -> float:
        return self.number(column, f"a number, more than 0, at most {LARGEST:,.0f}", lambda v: 0 < v <= LARGEST)

    def optional(self, column: str) -> float | None:
        return self.positive(column) if self.text(column) else None

    def choice(self, column: str, values: tuple[float, ...], default: float | None = None) -> float:
        return self.number(column, " or ".join(f"{v:g}" for v in values), lambda v: v in values, default)


def read_points(text: str) -> list[Point]:
    """Points of a CSV. Raises PointsError with every problem, also for a file without a single point."""
    reader = csv.DictReader(text.splitlines())
    missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
    if missing:
        raise PointsError(f"line 1: no column {', '.join(missing)}; allowed: a CSV with {', '.join(COLUMNS)}")
    problems: list[str] = []
    points = [_point(_Row(row, line, problems)) for line, row in enumerate(reader, start=2)]
    if not points:
        problems.append("no points; allowed: at least one row below the header")
    if problems:
        raise PointsError("\n".join(problems))
    return points


def _point(row: _Row) -> Point:
    kind = Kind.THROUGHPUT
    try:
        kind = Kind(row.text("kind"))
    except ValueError:
        row.wrong("kind", ", ".join(Kind))
    gpu = row.text("gpu").upper()
    if gpu not in GPUS:
        row.wrong("gpu", ", ".join(GPUS))
    if not row.text("id"):
        row.wrong("id", "a name of the point")
    needed = ("out_tok_s",) if kind.is_throughput else ("itl_ms",) if kind is Kind.BATCH_1 else ("out_tok_s", "itl_ms")
    for column in needed:
        if not row.text(column):
            row.wrong(column, f"a number, which a point of kind {kind} needs")
    weights = (0.5, 1, 2) if gpu in GPUS and GPUS[gpu].fp4 else (1, 2)
    requests, most = row.optional("n_req"), row.optional("max_b")
    return Point(
        id=row.text("id"),
        kind=kind,
        stack=_stack(row),
        version=row.text("version"),
        gpu=gpu,
        tensor_parallel_size=int(row.choice("tp", (1, 2, 4, 8))),
        replicas=int(row.number("dp", "a whole number from 1 to 10,000", _whole, 1)),
        weight_bytes=row.choice("w", weights),
        kv_bytes=int(row.choice("kv", (1, 2))),
        prompt_tokens=row.positive("isl"),
        output_tokens=row.positive("osl"),
        tokens_per_second=row.optional("out_tok_s"),
        itl_ms=row.optional("itl_ms"),
        ttft_ms=row.optional("ttft_ms"),
        requests=None if requests is None else max(1, int(requests)),
        most_sequences=None if most is None else max(1, int(most)),
        url=row.text("url"),
    )


def _stack(row: _Row) -> Stack:
    if not row.text("engine"):
        row.wrong("engine", "a serving stack, such as vllm, trtllm or sglang")
    return stack_of(row.text("engine"), row.text("version"))


def _whole(value: float) -> bool:
    return value.is_integer() and 1 <= value <= 10_000


def committed_text() -> str:
    """The measurements that the committed calibration was fitted on (capacity/data/README.md)."""
    return (files("srvmod.capacity") / "data" / MEASUREMENTS).read_text(encoding="utf-8")


def read_file(path: Path) -> list[Point]:
    """Points of a file. Raises PointsError, also when it can't be read."""
    try:
        if path.stat().st_size > 50_000_000:
            raise PointsError(f"{path}: is larger than any table of points; allowed: at most 50 MB")
        return read_points(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PointsError(f"{path}: can't be read: {error.strerror}; allowed: a CSV file") from None
    except UnicodeDecodeError:
        raise PointsError(f"{path}: isn't UTF-8 text; allowed: a CSV file") from None
    except PointsError as error:
        raise PointsError(f"{path}: {error}") from None
