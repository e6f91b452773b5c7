"""Blocks and step times are those of the capacity room, and the image has what that needs."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from srvmod_engine.config import summary
from srvmod_engine.errors import ConfigError
from srvmod_engine.hardware import instances
from srvmod_engine.options import SimOptions
from srvmod_engine.step_model import StepBatch, load_step_model

from srvmod.capacity import kv_room, step_time
from srvmod.contract import LLAMA_3_70B, P5_48XLARGE
from srvmod.local.engine import tiny_weights

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


def _checkpoint(folder: Path, **config: object) -> Path:
    """A folder with the config.json of a Llama 3 70B checkpoint and these keys."""
    shape = {key: value for key, value in tiny_weights.LLAMA_3_70B.items() if key != "quantization_config"}
    (folder / "config.json").write_text(json.dumps({**shape, **config}))
    return folder


FP8_TENSORS = {"num_bits": 8, "type": "float"}
GROUPS = {"group_0": {"weights": FP8_TENSORS, "input_activations": FP8_TENSORS}}


@pytest.mark.parametrize(
    ("config", "flags", "method", "size"),
    [
        ({}, [], None, 2),
        ({"torch_dtype": "bfloat16"}, ["--dtype=half"], None, 2),
        ({}, ["--quantization=fp8"], "fp8", 1),
        ({}, ["-q", "fp8_per_block"], "fp8_per_block", 1),
        ({"quantization_config": {"quant_method": "fp8"}}, [], "fp8", 1),
        ({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": GROUPS}}, [],
         "compressed-tensors", 1),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "FP8"}}, ["-q=modelopt"], "modelopt", 1),
    ],
)  # fmt: skip
def test_weights_are_as_large_as_the_checkpoint_says(
    tmp_path: Path, config: dict[str, object], flags: list[str], method: str | None, size: float
) -> None:
    found = make_config(_checkpoint(tmp_path, **config), "--load-format=dummy", *flags, sim=SimOptions())
    assert (found.weights.method, found.layout.weight_bytes_per_element) == (method, size)
    assert found.num_blocks == kv_room(LLAMA_3_70B, found.layout).blocks
    told = summary(found)
    assert (told["quantization"], told["weight_bytes_per_element"]) == (method, size)


def test_a_bf16_checkpoint_has_less_room_and_longer_steps(weights: Path, tmp_path: Path) -> None:
    fp8 = make_config(weights, sim=SimOptions())
    bf16 = make_config(_checkpoint(tmp_path), "--load-format=dummy", sim=SimOptions())
    assert fp8.weights.method == "fp8"
    # 68.45 G weights take another byte each, a quarter of it on each GPU, and a token's KV cache 40,960 bytes there.
    assert (fp8.num_blocks - bf16.num_blocks) * 16 == pytest.approx(68.45e9 / 4 / 40_960, rel=1e-3)
    batch = StepBatch(10, 7_000, 0, 0, 0)
    assert load_step_model(bf16).seconds(batch) > load_step_model(fp8).seconds(batch) * 1.2


@pytest.mark.parametrize(
    ("config", "flags", "said"),
    [
        ({}, ["-q=auto_awq"], "Unknown quantization method: auto_awq. Must be one of"),
        ({"quantization_config": {"quant_method": "gptq", "bits": 4}}, [], "Unknown quantization method: gptq"),
        ({"quantization_config": {"quant_method": "fp8"}}, ["-q=modelopt"], "model config (fp8) does not match"),
        ({}, ["-q=modelopt"], "no quantization_config"),
        ({}, ["--dtype=float32"], "--dtype float32"),
        ({"quantization_config": {"quant_method": "compressed-tensors", "config_groups": {
            "group_0": {"weights": {"num_bits": 4}}}}}, [], "[(4, 16)] bits"),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, [], "weight_bytes_per_element"),
        ({"quantization_config": {"quant_method": "modelopt"}}, [], "quant_algo missing"),
        ({"quantization_config": ["fp8"]}, [], "quantization_config in config.json"),
    ],
)  # fmt: skip
def test_weights_that_the_simulation_can_not_size_are_refused(
    tmp_path: Path, config: dict[str, object], flags: list[str], said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_config(_checkpoint(tmp_path, **config), "--load-format=dummy", *flags, sim=SimOptions())
    assert said in str(caught.value)
