"""Plans for people and programs: intervals, refusals, the sweep and its picture."""

import json
import struct
import zlib
from xml.etree import ElementTree

import pytest

from srvmod.capacity import Layout, Slo, Traffic, plan
from srvmod.capacity.plot import sweep_png, sweep_svg, tick_step
from srvmod.capacity.png import png
from srvmod.capacity.report import between, lines, plan_as_json, sweep, sweep_as_json, sweep_counts
from srvmod.capacity.shapes import Anchor, Area, Line, Text
from srvmod.contract import LLAMA_3_70B, SESSIONS

TRAFFIC = Traffic(SESSIONS.value, 512, 512)
PLAN = plan(TRAFFIC, LLAMA_3_70B)


def test_every_figure_has_an_interval() -> None:
    found = plan_as_json(PLAN, LLAMA_3_70B, 55.04)
    for name in ("itlMeanMs", "itlP95Ms", "itlGapP95Ms", "ttftP95Ms", "tokensPerSecond"):
        figure = found["predicted"][name]
        assert figure["low"] < figure["likely"] < figure["high"], name
    assert found["nodes"]["low"] <= found["nodes"]["likely"] <= found["nodes"]["high"]
    assert found["cost"]["usdPerHour"]["likely"] == pytest.approx(55.04 * PLAN.nodes)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_without_a_price_there_is_no_cost() -> None:
    found = plan_as_json(PLAN, LLAMA_3_70B)
    assert found["cost"] is None
    assert "no price" in dict(lines(found))["cost"]


def test_memory_parts_add_up() -> None:
    parts = plan_as_json(PLAN, LLAMA_3_70B)["memoryGibPerGpu"]
    assert sum(size for name, size in parts.items() if name != "total") == pytest.approx(parts["total"], abs=0.05)


def test_a_sweep_tells_no_latency_near_saturation() -> None:
    layout = Layout(max_num_batched_tokens=512)
    points = sweep(TRAFFIC, LLAMA_3_70B, layout, Slo(), range(8, 504, 31))
    told = sweep_as_json(points)
    assert {row["saturated"] for row in told} == {None, "prefill budget"}
    for row in told:
        assert (row["itlP95Ms"] is None) is (row["saturated"] is not None)
    json.dumps(told, allow_nan=False)


def test_sweep_counts_pass_the_limit() -> None:
    for most in (1, 5, 90, 700):
        counts = sweep_counts(most)
        assert counts == sorted(set(counts))
        assert counts[0] == 1
        assert counts[-1] > most


def test_the_picture_is_svg_with_the_target_line() -> None:
    points = sweep(TRAFFIC, LLAMA_3_70B, Layout(), Slo(), sweep_counts(PLAN.most_sessions_per_engine))
    picture = sweep_svg(points, Slo(), "a <title> & more")
    root = ElementTree.fromstring(picture)
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    assert any("at most 30 ms" in text for text in texts)
    assert any(text == "a <title> & more" for text in texts)


def pixels(picture: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and rows of a PNG that this package wrote: 8-bit RGB, no filters."""
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    start = picture.index(b"IDAT") + 4
    data = zlib.decompress(picture[start : start + struct.unpack(">I", picture[start - 8 : start - 4])[0]])
    size = 3 * width + 1
    rows = [data[size * row : size * (row + 1)] for row in range(height)]
    assert all(row[0] == 0 for row in rows)
    return width, height, [row[1:] for row in rows]


def test_the_same_picture_as_png() -> None:
    points = sweep(TRAFFIC, LLAMA_3_70B, Layout(), Slo(), sweep_counts(PLAN.most_sessions_per_engine))
    width, height, rows = pixels(sweep_png(points, Slo(), "title"))
    assert (width, height, len(rows)) == (820, 460, 460)
    reddish = [sum(row[x] > row[x + 1] + 60 for x in range(0, 3 * width, 3)) for row in rows]
    assert max(reddish) > 500, "no line at the target"


def test_shapes_as_png() -> None:
    red = (255, 0, 0)
    _, _, rows = pixels(png([Area([(2, 2), (6, 2), (6, 6), (2, 6)], red, 1.0), Text((8, 14), "I", (0, 0, 0))], 16, 16))
    assert rows[3][9:12] == bytes(red)
    assert rows[0] == b"\xff" * 48
    assert any(value < 128 for value in rows[10][24:])
    pixels(png([Text((5, 5), "\u00fc", red, Anchor.END, upright=True), Line([(0, 0), (99, 99)], red, 2, 3)], 8, 8))


def test_ticks_are_round() -> None:
    assert [tick_step(most) for most in (6, 53, 264, 1_000)] == [1, 10, 50, 200]


def test_words_of_intervals() -> None:
    assert between({"low": 1.0, "likely": 2.0, "high": 3.0}, " ms") == "2.0 ms (1.0 to 3.0)"
    assert between({"low": 1, "likely": 2, "high": None}, "", 0) == "2 (1 to none holds)"
    assert "saturation" in between(None, " ms")
