"""The type checker refuses milliseconds where seconds belong, and the other way round."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.acceptance
ROOT = Path(__file__).parents[2]
HEAD = """from srvmod.capacity import Layout, Slo, StepModel, Traffic, Work, plan
from srvmod.contract import LLAMA_3_70B, Milliseconds, Seconds, to_milliseconds, to_seconds

step = StepModel(LLAMA_3_70B, Layout()).seconds(Work(1, 512))
"""
MIXES = (
    "Slo(itl_p95=step)",
    "Slo(itl_p95=Seconds(0.03))",
    "Slo(itl_p95=0.03)",
    "to_milliseconds(Milliseconds(30.0))",
    "to_seconds(step)",
    "wrong: Seconds = plan(Traffic(650, 512, 512), LLAMA_3_70B).prediction.itl_mean_ms",
)
RIGHT = (
    "Slo(itl_p95=to_milliseconds(step))",
    "right: Milliseconds = plan(Traffic(650, 512, 512), LLAMA_3_70B).prediction.itl_mean_ms",
)


def test_the_checker_refuses_every_mix_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "mixed.py"
    file.write_text(HEAD + "\n".join((*MIXES, *RIGHT)) + "\n")
    python = Path(sys.executable)
    settings = {"include": [str(file)], "extraPaths": [str(ROOT / "src")], "strict": [str(file)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [python.parent / "pyright", "--project", tmp_path, "--pythonpath", python, "--outputjson"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    errors = [one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"]
    found = [one["range"]["start"]["line"] for one in errors if one["rule"] != "reportUnusedExpression"]
    lines = {line - HEAD.count("\n") for line in found}
    assert lines == set(range(len(MIXES))), done.stdout
