"""Memory of an engine: weights, KV cache per token, and how many blocks and contexts fit.

All per-GPU figures are for one of the engine's GPUs. Contexts are counted per engine: its GPUs hold shares of the
same contexts, so the count is never multiplied by the number of GPUs.
"""

from dataclasses import dataclass

from srvmod.capacity.layout import CapacityError, Layout
from srvmod.contract import GIB, Bytes, KvCacheDtype, ModelShape

BF16_BYTES = 2


def weight_bytes_per_gpu(model: ModelShape, layout: Layout) -> Bytes:
    """Weights on one GPU: quantised linear layers, bf16 embedding and output head, all split over the GPUs."""
    linear = model.linear_parameters * layout.weight_bytes_per_element
    embeddings = 2 * model.embedding_parameters * BF16_BYTES
    return Bytes((linear + embeddings) / layout.tensor_parallel_size)


def kv_bytes_per_token(model: ModelShape, dtype: KvCacheDtype) -> Bytes:
    """KV cache of one token over all GPUs: keys and values of every layer and KV head."""
    return Bytes(2 * model.layers * model.kv_heads * model.head_dim * dtype.bytes_per_element)


def kv_bytes_per_token_per_gpu(model: ModelShape, layout: Layout) -> Bytes:
    """KV cache of one token on one GPU. With more GPUs than KV heads each GPU holds at least one head."""
    heads_per_gpu = max(1.0, model.kv_heads / layout.tensor_parallel_size)
    share = heads_per_gpu / model.kv_heads
    return Bytes(kv_bytes_per_token(model, layout.kv_cache_dtype) * share)


@dataclass(frozen=True)
class KvRoom:
    """Room for KV cache in one engine."""

    bytes_per_gpu: Bytes
    blocks: int
    block_tokens: int

    @property
    def tokens(self) -> int:
        """Tokens that all blocks hold."""
        return self.blocks * self.block_tokens

    def contexts(self, tokens: int) -> int:
        """Whole contexts of a length that fit, each rounded up to whole blocks."""
        return self.blocks // -(-tokens // self.block_tokens)


def kv_room(model: ModelShape, layout: Layout) -> KvRoom:
    """Blocks that vLLM allots at start: utilisation x total memory, less weights and overhead.

    Raises CapacityError when not even one block is left.
    """
    usable = layout.instance.gpu.usable * layout.gpu_memory_utilization
    free = usable - weight_bytes_per_gpu(model, layout) - layout.overhead_gib * GIB
    blocks = int(free // (kv_bytes_per_token_per_gpu(model, layout) * layout.block_tokens))
    if blocks < 1:
        raise CapacityError(
            "tensor_parallel_size",
            layout.tensor_parallel_size,
            f"{model.id} leaves no room for KV cache on {layout.instance.gpu.name}",
            "more GPUs per engine, or a smaller model",
        )
    return KvRoom(bytes_per_gpu=Bytes(free), blocks=blocks, block_tokens=layout.block_tokens)


def fragmentation(mean_tokens: float, block_tokens: int) -> float:
    """Share of the KV cache that is allotted but unused: on average half of each sequence's last block."""
    return (block_tokens - 1) / 2 / mean_tokens
