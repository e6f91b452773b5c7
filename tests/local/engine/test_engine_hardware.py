"""Blocks and step times are those of the capacity room, and the image has what that needs."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest
from srvmod_engine.errors import ConfigError
from srvmod_engine.hardware import instances
from srvmod_engine.options import SimOptions
from srvmod_engine.step_model import StepBatch, load_step_model

from srvmod.capacity import kv_room, step_time
from srvmod.contract import LLAMA_3_70B, P5_48XLARGE

from .rig import make_config

REPO = Path(__file__).parents[3]


def test_blocks_are_those_of_the_capacity_model(weights: Path) -> None:
    config = make_config(weights, sim=SimOptions())
    assert config.layout.instance is P5_48XLARGE
    assert config.layout.max_num_batched_tokens == config.max_batched_tokens
    assert config.num_blocks == kv_room(config.shape, config.layout).blocks
    assert (config.shape.linear_parameters, config.shape.kv_heads) == (LLAMA_3_70B.linear_parameters, 8)


def test_steps_last_as_long_as_the_capacity_model_says(weights: Path) -> None:
    config = make_config(weights, sim=SimOptions())
    model = load_step_model(config)
    decode = step_time(LLAMA_3_70B, config.layout, decodes=100, prefill=0, context=700, prompt=1).total
    assert model.seconds(StepBatch(100, 70_000, 0, 0, 0)) == pytest.approx(decode)
    # A prompt of 1000 tokens in one chunk attends to half of it on average.
    both = step_time(LLAMA_3_70B, config.layout, decodes=100, prefill=1000, context=700, prompt=1000).total
    assert model.seconds(StepBatch(100, 70_000, 1000, 500_000, 1)) == pytest.approx(both, rel=0.01)
    assert both > decode * 1.5


def test_an_engine_without_work_options_uses_it(weights: Path) -> None:
    """8 to 30 ms: about what one stream alone has on four H100."""
    seconds = load_step_model(make_config(weights, sim=SimOptions())).seconds(StepBatch(1, 100, 0, 0, 0))
    assert 0.008 < seconds < 0.030


def test_memory_can_be_given_in_bytes(weights: Path) -> None:
    config = make_config(weights, "--kv-cache-memory-bytes", str(40_960 * 16 * 1000))
    assert config.num_blocks == 1000


def test_only_machines_of_the_contract_can_be_pretended(weights: Path) -> None:
    assert P5_48XLARGE.name in instances()
    with pytest.raises(ConfigError, match=r"SRVMOD_SIM_INSTANCE='p9\.metal': unknown; known are .*p5\.48xlarge"):
        make_config(weights, sim=SimOptions(instance="p9.metal"))


def test_a_model_too_large_for_the_gpus_is_refused(weights: Path) -> None:
    with pytest.raises(ConfigError, match="no room for KV cache"):
        make_config(weights, "--tensor-parallel-size=1", "--gpu-memory-utilization=0.5", sim=SimOptions())


def test_what_is_imported_of_the_rooms_is_in_the_image() -> None:
    """Third-party packages that `contract` and `capacity` load must stand in the image's requirements."""
    lines = (REPO / "local" / "engine" / "requirements.txt").read_text().splitlines()
    packed = {line.partition("==")[0].replace("-", "_") for line in lines if "==" in line}
    # In a process of its own: other tests load commands of these rooms, which the image never does.
    code = (
        "import sys, srvmod_engine.hardware\n"
        "rooms = ('srvmod.contract', 'srvmod.capacity')\n"
        "print(*(m.__file__ for n, m in sys.modules.items() if n.startswith(rooms) and m.__file__), sep='\\n')"
    )
    place = {**os.environ, "PYTHONPATH": str(REPO / "local" / "engine")}
    done = subprocess.run([sys.executable, "-c", code], env=place, text=True, capture_output=True, check=True)
    loaded = [Path(line) for line in done.stdout.split()]
    assert loaded
    allowed = packed | set(sys.stdlib_module_names) | {"srvmod"}
    for file in loaded:
        for node in ast.parse(file.read_text()).body:
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                assert name.partition(".")[0] in allowed, f"{file}: {name} isn't in the engine's image"
                rooms = name.split(".")[1:2] if name.startswith("srvmod.") else []
                assert set(rooms) <= {"contract", "capacity"}, f"{file}: {name} isn't in the engine's image"
