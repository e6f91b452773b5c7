"""Memory of an engine: weights, what vLLM sets aside, KV cache per token, and how many blocks and contexts fit.

All per-GPU figures are for one of the engine's GPUs. Contexts are counted per engine: its GPUs hold shares of the
same contexts, so the count is never multiplied by the number of GPUs.

vLLM's own account (v1 gpu_worker.determine_available_memory,
https://github.com/vllm-project/vllm/blob/0012cf691b7e69423244d2b1405f4b6832156e19/vllm/v1/worker/gpu_worker.py):
KV cache = total memory x utilisation, less weights, less the peak of a profile run at the step's token budget, less
what isn't torch's (CUDA context, NCCL); since 0.21 also less an estimate of the CUDA graphs.

A model that drafts lies on the same GPUs, split over them as the large one is: its weights go off what is left for the
KV cache, and every token needs room in the caches of both.
"""

from dataclasses import dataclass

from srvmod.capacity.layout import CapacityError, Layout
from srvmod.contract import GIB, Bytes, KvCacheDtype, ModelShape

BF16_BYTES = 2
FP32_BYTES = 4
CONTEXT_GIB = 0.6
"""CUDA context, kernels and allocator slack of one process. Assumed; read it back from a running engine."""
NCCL_GIB = 0.8
"""NCCL and custom all-reduce buffers of a tensor-parallel group. Assumed."""
GRAPH_MIB_PER_SIZE = 12.0
"""CUDA graphs of one captured batch size. Assumed; sizes are captured in steps of 8 rows."""
GRAPH_STEP = 8


def weight_bytes_per_gpu(model: ModelShape, layout: Layout) -> Bytes:
    """Weights on one GPU: quantised linear layers, bf16 embedding and output head, all split over the GPUs."""
    linear = model.linear_parameters * layout.weight_bytes_per_element
    tables = 1 if model.tied_embeddings else 2
    embeddings = tables * model.embedding_parameters * BF16_BYTES
    return Bytes((linear + embeddings) / layout.tensor_parallel_size)


def kv_bytes_per_token(model: ModelShape, dtype: KvCacheDtype) -> Bytes:
    """KV cache of one token over all GPUs: keys and values of every layer and KV head."""
    return Bytes(2 * model.layers * model.kv_heads * model.head_dim * dtype.bytes_per_element)


def kv_bytes_per_token_per_gpu(model: ModelShape, layout: Layout) -> Bytes:
    """KV cache of one token on one GPU. With more GPUs than KV heads each GPU holds at least one head."""
    heads_per_gpu = max(1.0, model.kv_heads / layout.tensor_parallel_size)
    share = heads_per_gpu / model.kv_heads
    return Bytes(kv_bytes_per_token(model, layout.kv_cache_dtype) * share)


def kv_allotted_per_token_per_gpu(model: ModelShape, layout: Layout) -> Bytes:
    """KV cache that the engine allots for one token on one GPU: for the model, and for the one that drafts.

    vLLM keeps both caches in the same element type; that their blocks fit together without waste is assumed.
    """
    own = kv_bytes_per_token_per_gpu(model, layout)
    return Bytes(own if layout.draft is None else own + kv_bytes_per_token_per_gpu(layout.draft, layout))


@dataclass(frozen=True)
class MemoryBudget:
    """Memory of one GPU as vLLM accounts it, in bytes. `reserved` is what its utilisation leaves to others."""

    total: Bytes
    reserved: Bytes
    weights: Bytes
    activations: Bytes
    non_torch: Bytes
    cuda_graphs: Bytes
    draft: Bytes
    """Weights of the model that drafts; 0 without one."""

    @property
    def kv_cache(self) -> Bytes:
        """What is left for the KV cache; negative when nothing is."""
        overhead = self.activations + self.non_torch + self.cuda_graphs
        return Bytes(self.total - self.reserved - self.weights - self.draft - overhead)


def memory_budget(model: ModelShape, layout: Layout) -> MemoryBudget:
    """The memory of one GPU by purpose. A layout's `overhead_gib` replaces the estimates of overhead."""
    total = layout.instance.gpu.usable
    reserved = Bytes(total * (1 - layout.gpu_memory_utilization))
    weights = weight_bytes_per_gpu(model, layout)
    draft = Bytes(0) if layout.draft is None else weight_bytes_per_gpu(layout.draft, layout.of_draft)
    if layout.overhead_gib is not None:
        given = Bytes(layout.overhead_gib * GIB)
        return MemoryBudget(total, reserved, weights, given, Bytes(0), Bytes(0), draft)
    tp = layout.tensor_parallel_size
    # The profile run's peak: residual, norm and all-reduce copies are whole, the feed-forward's are split; then the
    # logits of all sequences in fp32, gathered, with the sampler's copy.
    row = BF16_BYTES * (4 * model.hidden + 3 * model.ffn / tp)
    logits = 2 * FP32_BYTES * min(layout.max_num_seqs, layout.max_num_batched_tokens) * model.vocabulary
    activations = Bytes(layout.max_num_batched_tokens * row + logits)
    non_torch = Bytes((CONTEXT_GIB + (NCCL_GIB if tp > 1 else 0)) * GIB)
    graphs = Bytes((layout.graph_rows or layout.max_num_seqs) / GRAPH_STEP * GRAPH_MIB_PER_SIZE * 2**20)
    return MemoryBudget(total, reserved, weights, activations, non_torch, graphs, draft)


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
    """Blocks that the engine allots at start, as vLLM accounts memory.

    Raises CapacityError when not even one block is left.
    """
    free = memory_budget(model, layout).kv_cache
    blocks = int(free // (kv_allotted_per_token_per_gpu(model, layout) * layout.block_tokens))
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
