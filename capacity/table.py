"""Reads measured points from a CSV. What is wrong is an error with its line, what can't be scored has its reason.

Columns, in any order: id, kind (tput, offline, online, b1), engine, gpu, tp, w and kv (bytes per weight and per KV
element), isl and osl (mean prompt and output tokens); and, where a file has them: model, version, dp, out_tok_s,
itl_ms, itl_p99_ms, ttft_ms, ttft_p99_ms, n_req, max_b, note, url. A row needs the measured value of its kind.
"""

import csv
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Final

from srvmod.capacity.layout import CapacityError
from srvmod.capacity.memory import kv_room
from srvmod.capacity.points import Kind, Point
from srvmod.capacity.stacks import stack_of
from srvmod.contract import GPUS, LLAMA_2_70B, LLAMA_3_1_70B, LLAMA_3_2_1B, Milliseconds, ModelShape

MEASUREMENTS: Final = "llm-serving-measurements.csv"
COLUMNS: Final = ("id", "kind", "engine", "gpu", "tp", "w", "kv", "isl", "osl")
"""Columns that a file must have; the others may be missing."""
LARGEST: Final = 1e7
LARGEST_FILE: Final = 50_000_000
NOT_TOLD: Final = frozenset({"n/a", "na", "n/p", "np", "none", "null", "unknown", "-", "?"})
"""What sources write where they don't say: the same as an empty cell."""
SHAPES: Final[tuple[tuple[str, ModelShape], ...]] = (
    (r"llama-?2.*70b", LLAMA_2_70B),
    (r"llama-?3(\.[13])?-.*70b|llama-?3(\.[13])?-?70b", LLAMA_3_1_70B),
    (r"llama-?3\.2.*\b1b", LLAMA_3_2_1B),
)
"""Patterns of model names, and the shape that each has: Llama 3, 3.1 and 3.3 share one."""


class PointsError(ValueError):
    """A file of points that is wrong; the text names every line and column that is."""


@dataclass(frozen=True)
class Unscored:
    """A row that is in order but that the model has no answer for, and why."""

    line: int
    id: str
    reason: str


@dataclass(frozen=True)
class Table:
    """A file's points, and its rows that can't be scored."""

    points: tuple[Point, ...]
    unscored: tuple[Unscored, ...]


class _UnscorableError(Exception):
    """A row that can't be scored; the message is the reason."""


class _Row:
    """Reads the fields of one row and collects what is wrong with them."""

    def __init__(self, row: Mapping[str, str | None], line: int, problems: list[str]) -> None:
        self.row, self.line, self.problems = row, line, problems

    def cell(self, column: str) -> str:
        return (self.row.get(column) or "").strip()

    def text(self, column: str) -> str:
        """The cell; empty where the source doesn't tell."""
        found = self.cell(column)
        return "" if found.lower() in NOT_TOLD else found

    def wrong(self, column: str, allowed: str) -> None:
        self.problems.append(f"line {self.line}, {column} = {self.cell(column)!r}; allowed: {allowed}")

    def name(self, column: str, allowed: str) -> str:
        if not self.cell(column):
            self.wrong(column, allowed)
        return self.cell(column)

    def number(self, column: str, allowed: str, ok: Callable[[float], bool]) -> float:
        """A number, 1 where it is wrong. Raises _UnscorableError for an empty cell."""
        text = self.text(column)
        if not text:
            raise _UnscorableError(f"{column} isn't told")
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not (math.isfinite(value) and ok(value)):
            self.wrong(column, allowed)
            return 1.0
        return value

    def positive(self, column: str) -> float:
        allowed = f"a plain number, more than 0, at most {LARGEST:,.0f}"
        return self.number(column, allowed, lambda v: 0 < v <= LARGEST)

    def optional(self, column: str) -> float | None:
        return self.positive(column) if self.text(column) else None

    def milliseconds(self, column: str) -> Milliseconds | None:
        value = self.optional(column)
        return None if value is None else Milliseconds(value)

    def whole(self, column: str, most: int, default: int | None = None) -> int:
        if default is not None and not self.text(column):
            return default
        allowed = f"a whole number from 1 to {most:,}"
        return int(self.number(column, allowed, lambda v: v.is_integer() and 1 <= v <= most))


def read_table(text: str) -> Table:
    """The rows of a CSV. Raises PointsError with every problem, also for a file without a single row."""
    reader = csv.DictReader(text.removeprefix("\ufeff").splitlines(), strict=True)
    try:
        return _table(reader)
    except csv.Error as error:
        raise PointsError(f"line {reader.line_num + 1}: isn't CSV: {error}; allowed: cells and commas") from None


def _table(reader: "csv.DictReader[str]") -> Table:
    names = [name.strip().lower() for name in reader.fieldnames or ()]
    twice = sorted({name for name in names if name and names.count(name) > 1})
    missing = [column for column in COLUMNS if column not in names]
    if twice or missing:
        what = f"no column {', '.join(missing)}" if missing else f"more than one column {', '.join(twice)}"
        raise PointsError(f"line 1: {what}; allowed: a CSV with {', '.join(COLUMNS)}, each once, in any order")
    reader.fieldnames = names
    problems: list[str] = []
    points: list[Point] = []
    unscored: list[Unscored] = []
    for cells in reader:
        row = _Row(cells, reader.line_num, problems)
        if None in cells:
            problems.append(f"line {row.line}: has more cells than line 1; allowed: {len(names)}")
            continue
        try:
            points.append(_point(row))
        except (_UnscorableError, CapacityError) as error:
            unscored.append(Unscored(row.line, row.cell("id"), str(error)))
    if not points and not unscored:
        problems.append("no points; allowed: at least one row below the header")
    if problems:
        raise PointsError("\n".join(problems))
    return Table(tuple(points), tuple(unscored))


def _point(row: _Row) -> Point:
    """A row's point. Raises _UnscorableError or CapacityError for one that can't be scored."""
    name = row.name("id", "a name of the point")
    kind = Kind.THROUGHPUT
    try:
        kind = Kind(row.text("kind"))
    except ValueError:
        row.wrong("kind", ", ".join(Kind))
    engine = row.name("engine", "a serving stack, such as vllm, trtllm or sglang")
    rate, itl = row.optional("out_tok_s"), row.milliseconds("itl_ms")
    first, first_p99 = row.milliseconds("ttft_ms"), row.milliseconds("ttft_p99_ms")
    requests, most = row.optional("n_req"), row.optional("max_b")
    prompt, output = row.positive("isl"), row.positive("osl")
    tp, replicas = row.whole("tp", 1_024), row.whole("dp", 10_000, 1)
    weights, kv = row.positive("w"), row.positive("kv")
    needed = {"out_tok_s": rate, "itl_ms": itl}
    if kind.is_throughput:
        del needed["itl_ms"]
    if kind is Kind.BATCH_1:
        del needed["out_tok_s"]
    lacking = [column for column, value in needed.items() if value is None]
    if lacking:
        raise _UnscorableError(f"{' and '.join(lacking)} isn't told, which a point of kind {kind} needs")
    if kv not in (1, 2):
        raise _UnscorableError(f"kv = {kv:g}: the model knows KV elements of 1 byte (FP8) and 2 bytes (bf16)")
    point = Point(
        id=name,
        kind=kind,
        model=_model(row),
        stack=stack_of(engine, row.text("version")),
        version=row.text("version"),
        gpu=_gpu(row),
        tensor_parallel_size=tp,
        replicas=replicas,
        weight_bytes=weights,
        kv_bytes=int(kv),
        prompt_tokens=prompt,
        output_tokens=output,
        tokens_per_second=rate,
        itl_ms=itl,
        ttft_ms=first,
        ttft_p99_ms=first_p99,
        requests=None if requests is None else max(1, int(requests)),
        most_sequences=None if most is None else max(1, int(most)),
        url=row.text("url"),
    )
    layout = point.layout
    layout.check_model(point.model)
    kv_room(point.model, replace(layout, gpu_memory_utilization=1, overhead_gib=0))
    return point


def _gpu(row: _Row) -> str:
    """The GPU's name: vendors and memory sizes around it don't matter (NVIDIA H100 80GB HBM3 is H100)."""
    text = row.text("gpu").upper()
    if not text:
        raise _UnscorableError("gpu isn't told")
    words = re.split(r"[^A-Z0-9]+", text)
    found = [gpu for gpu in GPUS if gpu in words]
    variant = {"PCIE", "NVL"} & set(words)
    if len(found) != 1 or variant:
        raise _UnscorableError(f"gpu = {row.text('gpu')}: the model knows {', '.join(GPUS)} with NVLink (SXM)")
    return found[0]


def _model(row: _Row) -> ModelShape:
    """The model's shape: by its name, else MLPerf's llama2-70b or the shape that Llama 3, 3.1 and 3.3 share."""
    name = row.text("model")
    if not name:
        return LLAMA_2_70B if "llama2-70b" in row.text("url").lower() else LLAMA_3_1_70B
    plain = re.sub(r"[\s_]+", "-", name.lower())
    found = next((shape for pattern, shape in SHAPES if re.search(pattern, plain)), None)
    if found is None:
        raise _UnscorableError(f"model = {name}: its shape isn't known; known: Llama 2, 3, 3.1 and 3.3 70B, 3.2 1B")
    return found


def read_points(text: str) -> list[Point]:
    """Points of a CSV in which every row can be scored. Raises PointsError otherwise."""
    table = read_table(text)
    if table.unscored:
        raise PointsError("\n".join(f"line {row.line}: {row.reason}; allowed: no such row" for row in table.unscored))
    return list(table.points)


def committed_text() -> str:
    """The measurements that the committed calibration was fitted on (capacity/data/README.md)."""
    return (files("srvmod.capacity") / "data" / MEASUREMENTS).read_text(encoding="utf-8")


def read_file(path: Path) -> Table:
    """The rows of a file. Raises PointsError, also when it can't be read or nothing in it can be scored."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise PointsError("is larger than any table of points; allowed: at most 50 MB")
        table = read_table(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise PointsError(f"{path}: can't be read: {error.strerror}; allowed: a CSV file") from None
    except UnicodeDecodeError:
        raise PointsError(f"{path}: isn't UTF-8 text; allowed: a CSV file") from None
    except PointsError as error:
        raise PointsError(f"{path}: {error}") from None
    if not table.points:
        told = "\n".join(f"line {row.line}, {row.id}: {row.reason}" for row in table.unscored)
        raise PointsError(f"{path}: none of its rows can be scored; allowed: at least one that can\n{told}")
    return table
