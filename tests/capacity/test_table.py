"""Files of measured points: what is wrong names its line and column, what can't be scored is counted with a reason."""

import csv
import io
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from srvmod.capacity.commands import bench
from srvmod.capacity.points import Kind
from srvmod.capacity.table import COLUMNS, PointsError, committed_text, read_file, read_points, read_table
from srvmod.contract import LLAMA_2_70B, LLAMA_3_1_70B, LLAMA_3_2_1B

HEADER = "id,kind,engine,version,gpu,tp,dp,w,kv,isl,osl,out_tok_s,itl_ms,n_req,max_b,url\n"
GOOD = "a,online,vllm,0.9.2,H100,4,1,1,1,512,512,5000,30,,,https://example.com\n"
ROW = dict(zip(HEADER.strip().split(","), GOOD.strip().split(","), strict=True))


def table_of(*changes: dict[str, str]) -> str:
    """A file with one good row, changed."""
    text = io.StringIO()
    rows = [{**ROW, **change} for change in changes]
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


@pytest.mark.parametrize(
    ("column", "value", "allowed"),
    [
        ("kind", "guess", "tput, offline, online, b1"),
        ("tp", "0", "1 to 1,024"),
        ("tp", "2.5", "1 to 1,024"),
        ("w", "-1", "more than 0"),
        ("isl", "0", "more than 0"),
        ("osl", "nan", "more than 0"),
        ("out_tok_s", "-5", "more than 0"),
        ("itl_ms", "inf", "more than 0"),
        ("itl_ms", "5%", "plain number"),
        ("out_tok_s", "5,000", "plain number"),
        ("ttft_ms", "fast", "plain number"),
        ("engine", "", "serving stack"),
        ("id", "", "name"),
    ],
)
def test_bad_rows_name_line_column_and_what_is_allowed(column: str, value: str, allowed: str) -> None:
    with pytest.raises(PointsError) as caught:
        read_table(table_of({column: value}))
    assert f"line 2, {column} = {value!r}" in str(caught.value)
    assert allowed in str(caught.value)


def test_every_problem_is_reported_at_once() -> None:
    bad = GOOD.replace("512", "x")
    with pytest.raises(PointsError) as caught:
        read_table(HEADER + GOOD + bad + bad)
    assert len(str(caught.value).splitlines()) == 4


@pytest.mark.parametrize("text", ["", "id,kind\n", HEADER])
def test_files_without_points(text: str) -> None:
    with pytest.raises(PointsError, match="allowed"):
        read_points(text)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"gpu": "A100"}, "gpu = A100: the model knows H100, H200, B200"),
        ({"gpu": "H100 PCIe"}, "NVLink"),
        ({"gpu": ""}, "gpu isn't told"),
        ({"tp": "n/p"}, "tp isn't told"),
        ({"tp": "16"}, "tensor_parallel_size = 16"),
        ({"w": "0.5"}, "weight_bytes_per_element = 0.5"),
        ({"kv": "4"}, "kv = 4"),
        ({"itl_ms": ""}, "itl_ms isn't told, which a point of kind online needs"),
        ({"isl": ""}, "isl isn't told"),
        ({"model": "mistralai/Mixtral-8x7B"}, "model = mistralai/Mixtral-8x7B"),
        ({"w": "2", "tp": "1"}, "leaves no room"),
    ],
)
def test_what_the_model_does_not_cover_is_counted_with_its_reason(change: dict[str, str], reason: str) -> None:
    found = read_table(table_of({"model": "", "id": "good"}, {"model": "", **change}))
    assert [point.id for point in found.points] == ["good"]
    [row] = found.unscored
    assert (row.line, row.id) == (3, "a")
    assert reason in row.reason
    with pytest.raises(PointsError, match="line 3"):
        read_points(table_of({"model": ""}, {"model": "", **change}))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("meta-llama/Llama-3.3-70B-Instruct", LLAMA_3_1_70B), ("Meta-Llama-3-70B", LLAMA_3_1_70B),
        ("llama3.1-70b", LLAMA_3_1_70B), ("Llama 2 70B", LLAMA_2_70B), ("meta-llama/Llama-3.2-1B", LLAMA_3_2_1B),
        ("", LLAMA_3_1_70B),
    ],
)  # fmt: skip
def test_models_by_name(name: str, shape: object) -> None:
    assert read_table(table_of({"model": name})).points[0].model == shape


@pytest.mark.parametrize("name", ["llama-3.1-8b", "llama-3.1-405b", "Llama-3.2-90B-Vision", "Qwen2.5-72B"])
def test_models_of_other_shapes_are_not_taken_for_one(name: str) -> None:
    assert not read_table(table_of({"model": name})).points


def test_columns_in_any_order_with_a_byte_order_mark_and_few_of_them(tmp_path: Path) -> None:
    columns = [*reversed(COLUMNS), "out_tok_s"]
    values = {**ROW, "kind": "tput", "gpu": "NVIDIA H100 80GB HBM3"}
    file = tmp_path / "points.csv"
    text = ",".join(name.upper() + " " for name in columns) + "\r\n" + ",".join(values[name] for name in columns)
    file.write_bytes(b"\xef\xbb\xbf" + text.encode())
    [point] = read_file(file).points
    assert (point.gpu, point.kind, point.replicas) == ("H100", Kind.THROUGHPUT, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEADER.replace("dp", "tp") + GOOD, "more than one column tp"),
        (HEADER.replace(",tp", "") + GOOD, "no column tp"),
        (HEADER + GOOD.strip() + ",more\n", "line 2: has more cells"),
        (HEADER.replace(",", ";"), "no column id"),
        (HEADER + 'a,"b\n', "line 2"),
    ],
)
def test_files_that_are_no_such_table(text: str, said: str) -> None:
    with pytest.raises(PointsError) as caught:
        read_table(text)
    assert said in str(caught.value)
    assert "allowed" in str(caught.value)


def test_a_file_without_a_row_that_can_be_scored(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(table_of({"gpu": "A100"}))
    done = CliRunner().invoke(bench, ["--points", str(file)])
    assert done.exit_code == 2
    assert "line 2, a: gpu = A100" in done.output


def test_bench_tells_every_row_that_it_left_out(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(table_of({}, {"gpu": "A100", "id": "old"}))
    done = CliRunner().invoke(bench, ["--points", str(file)])
    assert "1 of 2 rows can't be scored" in done.output
    assert "line 3, old: gpu = A100" in done.output
    figures = json.loads(CliRunner().invoke(bench, ["--points", str(file), "--json"]).stdout)["figures"]
    assert (figures["rows"], figures["points"], len(figures["unscored"])) == (2, 1, 1)


def test_the_committed_file_is_scored_whole() -> None:
    assert not read_table(committed_text()).unscored
