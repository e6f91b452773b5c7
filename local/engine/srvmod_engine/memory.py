"""How many KV blocks the pretended GPUs hold, in the way vLLM counts them."""

from typing import Final

from srvmod_engine.model import ModelShape

_GIB: Final = 2**30
_KV_BYTES: Final = {"auto": 2.0, "bfloat16": 2.0, "float16": 2.0, "fp8": 1.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0}


def kv_element_bytes(kv_cache_dtype: str) -> float:
    """Bytes of one KV element. Raises KeyError for a type whose size isn't known here."""
    return _KV_BYTES[kv_cache_dtype]


def known_kv_dtypes() -> tuple[str, ...]:
    """The values of --kv-cache-dtype that the simulation can size."""
    return tuple(_KV_BYTES)


def kv_bytes_per_gpu(
    shape: ModelShape, *, tensor_parallel: int, hbm_gib: float, utilization: float, overhead_gib: float
) -> float:
    """Memory left for KV on each GPU, bytes: HBM times utilisation, less FP8 weights and overhead.

    Linear layers count one byte per weight, embedding and head two, as in an FP8 checkpoint of Llama-3.
    """
    embedding = 2 * shape.vocab * shape.hidden
    weights = (shape.parameters - embedding) + 2 * embedding
    return hbm_gib * _GIB * utilization - weights / tensor_parallel - overhead_gib * _GIB


def num_gpu_blocks(
    shape: ModelShape, available_per_gpu: float, *, tensor_parallel: int, block_size: int, kv_cache_dtype: str
) -> int:
    """Blocks of `block_size` tokens that fit into `available_per_gpu` bytes on each GPU; never below 0."""
    # KV heads are divided over the workers; with more workers than heads they are replicated.
    shards = min(tensor_parallel, shape.kv_heads)
    per_block = shape.kv_bytes_per_token(kv_element_bytes(kv_cache_dtype)) / shards * block_size
    return max(0, int(available_per_gpu // per_block))
