"""What memory arithmetic says about claims: weights, overhead, KV cache, contexts, fragmentation.

Everything is for the shape that the specification names: Llama-3-70B, FP8 weights, TP 4 on H100, two engines per node.
"""

from dataclasses import dataclass, replace
from typing import Final

from srvmod.capacity.layout import Layout
from srvmod.capacity.memory import fragmentation, kv_bytes_per_token_per_gpu, memory_budget, weight_bytes_per_gpu
from srvmod.contract import (
    CONCURRENT_CONTEXTS,
    CONTEXT_TOKENS,
    CUDA_OVERHEAD_GB,
    DIAGRAM_WEIGHTS_GB_PER_GPU,
    FRAGMENTATION_PERCENT,
    GB,
    GIB,
    KV_BLOCK_TOKENS,
    KV_CACHE_GB_PER_GPU,
    LLAMA_3_70B,
    WEIGHTS_GB,
    WEIGHTS_GB_PER_GPU,
    KvCacheDtype,
    Verdict,
)

MODEL: Final = LLAMA_3_70B
FP8: Final = Layout()
BF16: Final = Layout(kv_cache_dtype=KvCacheDtype.BF16)
TOLERANCE: Final = 0.02
"""How far a number may be off and still be called true."""


@dataclass(frozen=True)
class Evidence:
    """What the model finds: a verdict, and the figures that lead to it."""

    verdict: Verdict
    text: str


def verdict(*, always: bool, sometimes: bool) -> Verdict:
    """True when it holds in every case looked at, conditional when in some, else false."""
    if always:
        return Verdict.TRUE
    return Verdict.CONDITIONAL if sometimes else Verdict.FALSE


def _close(value: float, claimed: float) -> Verdict:
    return Verdict.TRUE if abs(value / claimed - 1) <= TOLERANCE else Verdict.FALSE


def weights() -> Evidence:
    whole = weight_bytes_per_gpu(MODEL, FP8) * 4 / GB
    return Evidence(_close(whole, WEIGHTS_GB.value), f"{whole:.2f} GB")


def weights_per_gpu() -> Evidence:
    each = weight_bytes_per_gpu(MODEL, FP8)
    return Evidence(_close(each / GB, WEIGHTS_GB_PER_GPU.value), f"{each / GB:.2f} GB, {each / GIB:.2f} GiB per GPU")


def weights_diagram() -> Evidence:
    each = weight_bytes_per_gpu(MODEL, FP8) / GB
    bf16 = weight_bytes_per_gpu(MODEL, replace(FP8, weight_bytes_per_element=2)) / GB
    return Evidence(_close(each, DIAGRAM_WEIGHTS_GB_PER_GPU.value), f"{each:.1f} GB in FP8, {bf16:.1f} GB in bf16")


def overhead() -> Evidence:
    budget = memory_budget(MODEL, FP8)
    used = (budget.activations + budget.non_torch + budget.cuda_graphs) / GB
    share = 1 - (CUDA_OVERHEAD_GB.value - used) * GB / budget.total
    text = f"{used:.1f} GB for activations, CUDA, NCCL and graphs, and {budget.reserved / GB:.1f} GB left free at "
    text += f"{FP8.gpu_memory_utilization:g}; together {CUDA_OVERHEAD_GB.value} GB at a utilisation of {share:.3f}"
    whole = used + budget.reserved / GB
    return Evidence(verdict(always=whole <= CUDA_OVERHEAD_GB.value, sometimes=share <= 1), text)


def kv_cache() -> Evidence:
    usual = memory_budget(MODEL, FP8).kv_cache / GB
    lean = memory_budget(MODEL, replace(FP8, overhead_gib=2.3)).kv_cache / GB
    limit = KV_CACHE_GB_PER_GPU.value
    text = f"{usual:.1f} GB with what is estimated beside the weights, {lean:.1f} GB with 2.3 GiB"
    return Evidence(verdict(always=usual >= limit, sometimes=lean >= limit * (1 - TOLERANCE)), text)


def contexts() -> Evidence:
    def fitting(layout: Layout) -> int:
        tokens = KV_CACHE_GB_PER_GPU.value * GB / kv_bytes_per_token_per_gpu(MODEL, layout)
        return int(tokens // CONTEXT_TOKENS.value)

    bf16, fp8, limit = fitting(BF16), fitting(FP8), CONCURRENT_CONTEXTS.value
    text = f"per engine {bf16} in bf16 and {fp8} in FP8; per node {2 * bf16} and {2 * fp8:,}"
    return Evidence(verdict(always=bf16 >= limit, sometimes=2 * fp8 >= limit), text)


def fragmentation_of_blocks() -> Evidence:
    long = fragmentation(CONTEXT_TOKENS.value, KV_BLOCK_TOKENS.value) * 100
    shortest = (KV_BLOCK_TOKENS.value - 1) / 2 / (FRAGMENTATION_PERCENT.value / 100)
    text = f"{long:.2f} % at {CONTEXT_TOKENS.value:,} tokens; {FRAGMENTATION_PERCENT.value} % at {shortest:.0f}"
    return Evidence(verdict(always=False, sometimes=long < FRAGMENTATION_PERCENT.value), text)
