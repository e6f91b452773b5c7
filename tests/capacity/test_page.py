"""docs/capacity.md says what the model says."""

import json
import re
from pathlib import Path

import pytest

from srvmod.capacity import Layout, NodeRange, Slo, Stack, Traffic, calibration, plan
from srvmod.capacity.calibrate import PLACE
from srvmod.capacity.evidence import MIXES, nodes_at
from srvmod.capacity.plot import sweep_svg
from srvmod.capacity.report import sweep, sweep_counts
from srvmod.capacity.speculation import Drafting, draft_bound, most_sessions, schedule
from srvmod.contract import LLAMA_3_70B, SESSIONS, KvCacheDtype

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "capacity.md").read_text(encoding="utf-8")
MIX = Traffic(SESSIONS.value, 512, 512)
BF16 = Layout(kv_cache_dtype=KvCacheDtype.BF16)


def cell(nodes: NodeRange) -> str:
    return f"{nodes.likely} ({nodes.low} to {nodes.high})"


@pytest.mark.parametrize("mix", MIXES)
def test_nodes_of_the_specifications_mixes(mix: tuple[int, int]) -> None:
    cells = [cell(nodes_at(mix, ms, layout)) for layout in (Layout(), BF16) for ms in (23.2, 30)]
    assert f"| {mix[0]}/{mix[1]} | {' | '.join(cells)} |" in PAGE, "fix the table in docs/capacity.md"


def test_errors() -> None:
    errors = json.loads(PLACE.read_text(encoding="utf-8"))["errors"]
    rows = {
        "random tenths, throughput": errors["randomSplits"]["throughput"],
        "random tenths, ITL at given concurrency": errors["randomSplits"]["itl"],
        "a whole family left out, throughput": errors["leaveOneFamilyOut"]["throughput"],
        "a whole family left out, ITL": errors["leaveOneFamilyOut"]["itl"],
        "random tenths, median TTFT": errors["randomSplits"]["ttft"],
        "random tenths, TTFT p99": errors["randomSplits"]["ttftP99"],
        "a whole family left out, median TTFT": errors["leaveOneFamilyOut"]["ttft"],
        "a whole family left out, TTFT p99": errors["leaveOneFamilyOut"]["ttftP99"],
    }
    for name, band in rows.items():
        shares = " | ".join(f"{band[key]:.1%}".replace("%", " %") for key in ("mape", "median", "p90"))
        assert f"| {name} | {band['points']} | {shares} | {band['worst'] * 100:.0f} %" in PAGE, name
    tail = calibration().ttft_p99
    assert f"interval ({tail.low:.2f} to {tail.high:.2f})" in PAGE
    assert f"between {calibration().itl.low:.2f} and {calibration().itl.high:.2f} of the predicted" in re.sub(
        r"\s+", " ", PAGE
    )


def test_host_times() -> None:
    f = calibration().parameters
    text = re.sub(r"\s+", " ", PAGE)
    for name, stack in (("vLLM 0.9.2", Stack.VLLM), ("TensorRT-LLM", Stack.TENSORRT_LLM)):
        assert f"{name}: {f.host_ms_of(stack):.1f} ms and {f.host_us_of(stack):.0f} us" in text


def test_the_picture_is_fresh() -> None:
    traffic = Traffic(SESSIONS.value, 512, 512)
    most = plan(traffic, LLAMA_3_70B).most_sessions_per_engine
    title = f"{LLAMA_3_70B.id} on p5.48xlarge, 512 prompt and 512 output tokens"
    points = sweep(traffic, LLAMA_3_70B, Layout(), Slo(), sweep_counts(most))
    assert (DOCS / "pictures/sweep-512-512.svg").read_text() == sweep_svg(points, Slo(), title), (
        "fix: srvmod plan --sessions 650 --prompt 512 --output 512 --sweep --plot docs/pictures/sweep-512-512.svg"
    )


def test_speculation() -> None:
    text = re.sub(r"\s+", " ", PAGE)
    assert f"in batches of more than {draft_bound()} sequences" in text
    [*_, last] = [one for one in schedule(LLAMA_3_70B, Layout(), MIX, Drafting(), most_sequences=512) if one.tokens]
    assert f"at 512/512 it is worth it up to {last.last}." in text
    for drafting, words in ((False, "up to {} sessions per engine without drafts"), (True, "and {} with them")):
        most = most_sessions(LLAMA_3_70B, Layout(), 768, drafting=drafting)
        assert words.format(most) in text
