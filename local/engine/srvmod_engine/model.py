"""What the engine needs to know of a model: its shape, and that its files are there and readable.

The local stack's weights are tiny; the file `srvmod-stand-in.json` beside them says which model they stand for, and
memory and step times are those of that model. Without that file the folder's own config.json counts.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from srvmod.contract import ModelShape

from srvmod_engine.errors import WeightsError

STAND_IN: Final = "srvmod-stand-in.json"
_MAX_HEADER: Final = 100_000_000  # bytes; the safetensors format's own limit


def shape_from_config(name: str, config: dict[str, Any], where: str) -> ModelShape:
    """Build a shape from a Hugging Face config.json. Raises WeightsError naming the missing key."""
    try:
        heads = int(config["num_attention_heads"])
        return ModelShape(
            id=name,
            layers=int(config["num_hidden_layers"]),
            hidden=int(config["hidden_size"]),
            heads=heads,
            kv_heads=int(config.get("num_key_value_heads") or heads),
            head_dim=int(config.get("head_dim") or int(config["hidden_size"]) // heads),
            ffn=int(config["intermediate_size"]),
            vocabulary=int(config["vocab_size"]),
            context_tokens=int(config["max_position_embeddings"]),
        )
    except KeyError as missing:
        raise WeightsError(f"{where}: key {missing} is missing; a dense transformer's config.json has it") from None


@dataclass(frozen=True)
class LoadedModel:
    """The result of looking through a model folder."""

    shape: ModelShape
    stand_in: bool
    bytes: int
    tensors: int
    has_kv_scales: bool
    config: dict[str, Any]
    """config.json of the model that is pretended."""


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise WeightsError(f"{path} is missing; is the weight cache ready on this node?") from None
    except (OSError, ValueError) as error:
        raise WeightsError(f"{path} can't be read as JSON: {error}") from None
    if not isinstance(value, dict):
        raise WeightsError(f"{path}: expected a JSON object")
    return value


def _safetensors_names(path: Path) -> list[str]:
    """Names in one safetensors file, after checking that the file is as long as its header says."""
    size = path.stat().st_size
    with path.open("rb") as file:
        first = file.read(8)
        length = struct.unpack("<Q", first)[0] if len(first) == 8 else 0
        if not 0 < length <= min(_MAX_HEADER, size - 8):
            raise WeightsError(f"{path}: not a safetensors file (header of {length} bytes in {size})")
        try:
            header = json.loads(file.read(length))
        except ValueError as error:
            raise WeightsError(f"{path}: its safetensors header is damaged: {error}") from None
    tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
    end = max((entry["data_offsets"][1] for entry in tensors.values()), default=0)
    if 8 + length + end != size:
        raise WeightsError(f"{path}: {size} bytes, its header promises {8 + length + end}; the file is incomplete")
    return list(tensors)


def load_model(folder: Path, load_format: str) -> LoadedModel:
    """Look through the folder as a server would before it loads. Raises WeightsError.

    `load_format` is vLLM's `--load-format`; `dummy` needs no weight files, only config.json.
    """
    if not folder.is_dir():
        raise WeightsError(
            f"model {str(folder)!r}: no such folder. The simulation reads local folders only; give the path at "
            "which the weight cache is mounted, e.g. /models/<revision>"
        )
    config = _read_json(folder / "config.json")
    stand_in = folder / STAND_IN
    if stand_in.exists():
        described = _read_json(stand_in)
        config = described.get("config", {})
        shape = shape_from_config(str(described.get("name", "unnamed")), config, str(stand_in))
    else:
        shape = shape_from_config(folder.name, config, str(folder / "config.json"))
    names: list[str] = []
    total = 0
    if load_format != "dummy":
        files = sorted(folder.glob("*.safetensors"))
        if not files:
            raise WeightsError(f"{folder}: no *.safetensors file; wanted unless --load-format is dummy")
        for file in files:
            names += _safetensors_names(file)
            total += file.stat().st_size
        index = folder / "model.safetensors.index.json"
        if index.exists():
            wanted = set(_read_json(index).get("weight_map", {}).values())
            if absent := sorted(wanted - {file.name for file in files}):
                raise WeightsError(f"{folder}: {index.name} names {', '.join(absent)}, which is not there")
    scales = any(name.endswith((".k_scale", ".v_scale")) for name in names)
    return LoadedModel(shape, stand_in.exists(), total, len(names), scales, config)
