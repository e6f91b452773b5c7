"""Hardware, tensor parallelism, memory and KV cache."""

from typing import Final

from srvmod.contract.claims import Number
from srvmod.contract.words import Clause, Unit, Verdict

GPUS_PER_NODE: Final = Number(
    id="gpus-per-node",
    clause=Clause.MC_HW_01,
    section="1. Hardware Topology & Tensor Parallelism [MC-HW-01]",
    quote="AWS EC2 `p5.48xlarge` hosting 8 NVIDIA H100 80GB SXM5 GPUs connected via 900 GB/s bidirectional NVLink.",
    value=8,
    unit=Unit.GPUS,
    verdict=Verdict.TRUE,
    why="as EC2 describes the instance type",
)
NVLINK_GB_PER_SECOND: Final = Number(
    id="nvlink",
    clause=Clause.MC_HW_01,
    section="1. Hardware Topology & Tensor Parallelism [MC-HW-01]",
    quote="AWS EC2 `p5.48xlarge` hosting 8 NVIDIA H100 80GB SXM5 GPUs connected via 900 GB/s bidirectional NVLink.",
    value=900,
    unit=Unit.GIGABYTES_PER_SECOND,
    verdict=Verdict.TRUE,
    why="both directions together: 450 GB/s each way; a large all-reduce over 4 GPUs was measured at 237 GB/s",
)
TENSOR_PARALLEL_SIZE: Final = Number(
    id="tensor-parallel-size",
    clause=Clause.MC_HW_01,
    section="1. Hardware Topology & Tensor Parallelism [MC-HW-01]",
    quote="Tensor Parallelism: `tensor_parallel_size = 4`.",
    value=4,
    unit=Unit.GPUS,
    verdict=Verdict.TRUE,
    why="a choice that works: 4 divides the 64 heads and the 8 KV heads, and 4 GPUs are one island; TP 2 "
    "would give more throughput per node where the host's cost per step is low",
)
ENGINES_PER_NODE: Final = Number(
    id="engines-per-node",
    clause=Clause.MC_HW_01,
    section="1. Hardware Topology & Tensor Parallelism [MC-HW-01]",
    quote="Each `p5.48xlarge` hosts exactly 2 isolated replica engines (Engine 1 on GPUs 0-3, Engine 2 on "
    "GPUs 4-7), eliminating NUMA boundary crossing.",
    value=2,
    unit=Unit.ENGINES,
    verdict=Verdict.CONDITIONAL,
    why="true when the kubelet aligns each pod to one NUMA node (single-numa-node) and the pool admits only "
    "pods of 4 GPUs; nothing in Kubernetes does so by itself",
)


KV_BLOCK_TOKENS: Final = Number(
    id="kv-block",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="**Virtual Memory Block Size**: 16 tokens per page.",
    value=16,
    unit=Unit.TOKENS,
    verdict=Verdict.TRUE,
    why="vLLM's default on CUDA; vLLM on CPU needs multiples of 32, an exemption for local runs only",
)
WEIGHTS_GB: Final = Number(
    id="weights",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="Model Weights (FP8 Quantized): ~70 GB / 4 GPUs = 17.5 GB/GPU.",
    value=70,
    unit=Unit.GIGABYTES,
    verdict=Verdict.FALSE,
    why="4 % low: 68.45 GB of FP8 linear layers and 4.20 GB of bf16 embedding and output head are 72.65 GB",
)
WEIGHTS_GB_PER_GPU: Final = Number(
    id="weights-per-gpu",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="Model Weights (FP8 Quantized): ~70 GB / 4 GPUs = 17.5 GB/GPU.",
    value=17.5,
    unit=Unit.GIGABYTES,
    verdict=Verdict.FALSE,
    why="4 % low: 18.16 GB (16.92 GiB) per GPU",
)
GPU_MEMORY_GB: Final = Number(
    id="gpu-memory",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="Peak KV-Cache Allocation: 80 GB - 17.5 GB (Weights) - 5 GB (CUDA Overhead) = 57.5 GB/GPU.",
    value=80,
    unit=Unit.GIGABYTES,
    verdict=Verdict.TRUE,
    why="81,920 MiB; CUDA reports about 79.1 GiB of it",
)
CUDA_OVERHEAD_GB: Final = Number(
    id="cuda-overhead",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="Peak KV-Cache Allocation: 80 GB - 17.5 GB (Weights) - 5 GB (CUDA Overhead) = 57.5 GB/GPU.",
    value=5,
    unit=Unit.GIGABYTES,
    verdict=Verdict.CONDITIONAL,
    why="vLLM keeps (1 - utilisation) of the memory, and what a profile run, CUDA and NCCL need",
)
KV_CACHE_GB_PER_GPU: Final = Number(
    id="kv-cache-per-gpu",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="Peak KV-Cache Allocation: 80 GB - 17.5 GB (Weights) - 5 GB (CUDA Overhead) = 57.5 GB/GPU.",
    value=57.5,
    unit=Unit.GIGABYTES,
    verdict=Verdict.CONDITIONAL,
    why="vLLM's default utilisation is 0.92 since 0.22; 54.6 to 58.4 GB for 5.0 to 1.5 GiB beside the weights",
)
CONCURRENT_CONTEXTS: Final = Number(
    id="concurrent-contexts",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="57.5 GB supports up to **1,200 concurrent active sequence contexts** (at 2,048 tokens/context)",
    value=1_200,
    unit=Unit.CONTEXTS,
    verdict=Verdict.CONDITIONAL,
    why="false per engine (342 in bf16, 685 in FP8) and per node in bf16 (684); true per node with FP8 KV (1,370)",
)
CONTEXT_TOKENS: Final = Number(
    id="context-tokens",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="57.5 GB supports up to **1,200 concurrent active sequence contexts** (at 2,048 tokens/context)",
    value=2_048,
    unit=Unit.TOKENS,
    verdict=Verdict.TRUE,
    why="the length that the claim assumes; the model itself takes 8,192",
)
FRAGMENTATION_BEFORE_PERCENT: Final = Number(
    id="fragmentation-before",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="Memory Waste: Internal fragmentation reduced from 65% to < 3.8%.",
    value=65,
    unit=Unit.PERCENT,
    verdict=Verdict.CONDITIONAL,
    why="within the 60 to 80 % that the PagedAttention paper reports for contiguous allocation; of the "
    "company's own former system nothing is shown",
)
FRAGMENTATION_PERCENT: Final = Number(
    id="fragmentation",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="Memory Waste: Internal fragmentation reduced from 65% to < 3.8%.",
    value=3.8,
    unit=Unit.PERCENT,
    verdict=Verdict.CONDITIONAL,
    why="true for sequences longer than 197 tokens on average: a block of 16 wastes 7.5 tokens per sequence",
)
