"""The commands: what they print, and how they refuse."""

import json
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from srvmod.capacity.commands import bench
from srvmod.infra.plan_commands import plan

RUN = CliRunner()
APP = typer.Typer()
APP.command()(plan)
MIX = ["--sessions", "650", "--prompt", "512", "--output", "512"]
HEADER = "id,kind,engine,version,gpu,tp,dp,w,kv,isl,osl,out_tok_s,itl_ms,n_req,max_b,url\n"


def test_plan_from_options_as_json() -> None:
    done = RUN.invoke(APP, [*MIX, "--itl-ms", "25.5", "--price", "55.04", "--json", "--sweep"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["nodes"]["likely"] > 1
    assert found["cost"]["usdPerNodeHour"] == 55.04
    assert len(found["sweep"]) > 10


def test_plan_of_an_environment_is_what_its_program_runs() -> None:
    from srvmod.infra.settings import load_stack_file

    root = Path(__file__).parents[2]
    found = json.loads(RUN.invoke(APP, ["--env", "prod", "--json"]).stdout)
    sizing = load_stack_file(root / "Pulumi.prod.yaml").sizing
    assert (found["engines"], found["nodes"]["likely"]) == (sizing.plan.engines, sizing.plan.nodes)


def test_plan_draws_svg(tmp_path: Path) -> None:
    done = RUN.invoke(APP, [*MIX, "--sweep", "--plot", str(tmp_path / "sweep.svg")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "sweep.svg").read_text().startswith("<svg")
    assert "saturated" in done.output or "latency" in done.output


def test_plan_of_another_model(tmp_path: Path) -> None:
    config = {
        "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64, "num_key_value_heads": 8,
        "intermediate_size": 29568, "vocab_size": 152064, "max_position_embeddings": 32768,
    }  # fmt: skip
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))
    done = RUN.invoke(APP, [*MIX, "--config", str(file), "--instance", "p5en.48xlarge", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["instanceType"] == "p5en.48xlarge"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sessions", "nan", "--prompt", "1", "--output", "1"], "--sessions nan"),
        (["--sessions", "-1", "--prompt", "1", "--output", "1"], "--sessions -1"),
        (["--sessions", "1e30", "--prompt", "1", "--output", "1"], "from 1 to"),
        (["--sessions", "5"], "--prompt, --output: missing"),
        ([*MIX, "--tp", "3"], "--tp 3"),
        ([*MIX, "--tp", "0"], "--tp 0"),
        ([*MIX, "--itl-ms", "2"], "--itl-ms 2"),
        ([*MIX, "--price", "nan"], "--price nan"),
        ([*MIX, "--prefix-hit", "2"], "--prefix-hit 2"),
        ([*MIX, "--instance", "p4d.24xlarge"], "p5.48xlarge"),
        ([*MIX, "--plot", "x.svg"], "--sweep"),
        ([*MIX, "--sweep", "--plot", "x.gif"], ".svg or .png"),
        ([*MIX, "--config", "/nowhere"], "--config /nowhere"),
        (["--env", "moon"], "prod"),
        (["--sessions", "1", "--prompt", "9000", "--output", "1"], "8192"),
    ],
)
def test_plan_refuses(arguments: list[str], said: str) -> None:
    done = RUN.invoke(APP, arguments)
    assert done.exit_code == 2, done.output
    assert said in done.output
    assert "allowed" in done.output or "give" in done.output


def test_bench_of_a_file(tmp_path: Path) -> None:
    file = tmp_path / "points.csv"
    file.write_text(HEADER + "a,online,vllm,0.9.2,H100,4,1,1,1,512,512,5000,300,,,https://example.com\n")
    done = RUN.invoke(bench, ["--points", str(file), "--json"])
    assert done.exit_code == 1, done.output
    found = json.loads(done.stdout)
    assert set(found) == {"name", "machine", "figures", "goals", "met"}
    assert (found["name"], found["met"]) == ("capacity", False)
    assert found["figures"]["scores"]["itl"]["worst_id"] == "a"


def test_bench_refuses_what_is_no_table(tmp_path: Path) -> None:
    done = RUN.invoke(bench, ["--points", str(tmp_path)])
    assert done.exit_code == 2
    assert "--points" in done.output
