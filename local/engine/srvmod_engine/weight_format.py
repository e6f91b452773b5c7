"""Bytes per element of the pretended weights: from the checkpoint's config.json, --quantization and --dtype.

Memory and step times follow from it: a bf16 checkpoint takes twice the memory of an FP8 one, and its matrix products
run at bf16's speed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from srvmod_engine.errors import ConfigError

_ONLINE: Final = ("fp8_per_tensor", "fp8_per_block", "fp8_per_channel")
"""Methods that quantise a bf16 checkpoint while it is loaded; `fp8` does so, too."""
_METHODS: Final = ("compressed-tensors", "fp8", *_ONLINE, "modelopt", "modelopt_fp4")
"""Those whose weights the capacity model sizes. vLLM has more, most of which compute in bf16 from smaller weights."""
_BITS: Final = {"FP8": 8.0, "FP8_PER_CHANNEL_PER_TOKEN": 8.0, "NVFP4": 4.0}
"""By `quant_algo` of a ModelOpt checkpoint."""
_BF16: Final = 2.0


@dataclass(frozen=True)
class WeightFormat:
    """What the linear layers hold."""

    method: str | None
    """vLLM's name of the quantisation; None for weights of the model's own type."""
    bytes_per_element: float


def weight_format(config: Mapping[str, Any], *, quantization: str | None, dtype: str) -> WeightFormat:
    """The format of a model whose config.json is `config`, with vLLM's rules for the two options.

    Raises ConfigError for a method or type that the simulation can't size, and for one that contradicts the
    checkpoint.
    """
    if dtype in {"float", "float32"}:
        raise ConfigError(f"--dtype {dtype}: vLLM knows it, the simulation sizes models of 2 bytes per element")
    try:
        return _format(config.get("quantization_config") or {}, quantization)
    except (AttributeError, TypeError, ValueError) as error:
        raise ConfigError(f"quantization_config in config.json isn't as such checkpoints have it: {error}") from None


def _format(described: Mapping[str, Any], quantization: str | None) -> WeightFormat:
    found = str(described.get("quant_method") or "").lower() or None
    if found == "modelopt" and _algorithm(described) == "NVFP4":
        found = "modelopt_fp4"
    if quantization is not None and found is not None and quantization != found:
        raise ConfigError(
            f"Quantization method specified in the model config ({found}) does not match the quantization method "
            f"specified in the `quantization` argument ({quantization})."
        )
    method = quantization or found
    if method is None:
        return WeightFormat(None, _BF16)
    if method not in _METHODS:
        raise ConfigError(
            f"Unknown quantization method: {method}. Must be one of {list(_METHODS)} (vLLM may know it; the simulation "
            "doesn't know how fast it is)."
        )
    if found is None and method not in {"fp8", *_ONLINE}:
        raise ConfigError(f"--quantization {method}: config.json has no quantization_config of a checkpoint like that")
    return WeightFormat(method, _bits(method, described) / 8)


def _algorithm(described: Mapping[str, Any]) -> str:
    inner = described.get("quantization")
    return str(described.get("quant_algo") or (inner or {}).get("quant_algo") or "").upper()


def _bits(method: str, described: Mapping[str, Any]) -> float:
    """Bits per weight. Raises ConfigError where weights and activations differ in a way that isn't modelled."""
    if method.startswith("modelopt"):
        algorithm = _algorithm(described)
        if algorithm not in _BITS:
            raise ConfigError(f"quant_algo {algorithm or 'missing'}: the simulation sizes {', '.join(sorted(_BITS))}")
        return _BITS[algorithm]
    if method != "compressed-tensors":
        return 8.0
    groups = described.get("config_groups") or {}
    formats = {(_bits_of(group, "weights"), _bits_of(group, "input_activations")) for group in groups.values()}
    if formats != {(8, 8)}:
        raise ConfigError(
            f"compressed-tensors with weights and activations of {sorted(formats)} bits: the simulation sizes 8 and 8"
        )
    return 8.0


def _bits_of(group: Mapping[str, Any], part: str) -> int:
    """16 where a part isn't quantised."""
    return int((group.get(part) or {}).get("num_bits", 16))
