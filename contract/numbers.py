"""Every number of the specification, once.

Rooms import these instead of writing the number again; the unit is in `unit` and in the constant's name. The
verdicts were reached by arithmetic on the model and hardware facts, by published measurements, and by the
capacity room's model (`srvmod claims` shows them).
"""

from typing import Final

from srvmod.contract.claims import Number
from srvmod.contract.words import Clause, Unit, Verdict

_TRAFFIC = "It sustains 650 concurrent streaming sessions generating 28,000 output tokens/second on AWS EKS"
_BUDGETS = "with a Time-To-First-Token (TTFT) budget <= 350 ms and Inter-Token Latency (ITL) <= 30 ms"

# Traffic and latency targets ------------------------------------------------------------------------------

SESSIONS: Final = Number(
    id="sessions",
    clause=Clause.SUMMARY,
    section="Summary",
    quote=_TRAFFIC,
    value=650,
    unit=Unit.SESSIONS,
    verdict=Verdict.CONDITIONAL,
    why="true on as many nodes as the declared traffic mix needs (3 to 5 p5.48xlarge at 512/512 tokens); "
    "false on one node together with 28,000 tokens/s, for every mix tried",
)
OUTPUT_TOKENS_PER_SECOND: Final = Number(
    id="output-tokens-per-second",
    clause=Clause.SUMMARY,
    section="Summary",
    quote=_TRAFFIC,
    value=28_000,
    unit=Unit.TOKENS_PER_SECOND,
    verdict=Verdict.CONDITIONAL,
    why="28,000 tokens/s over 650 sessions is a mean ITL of 23.2 ms: reached with enough engines; on one "
    "node only without a latency limit (30,551 tokens/s measured on 8 H100 at 142 ms per token, MLPerf "
    "v5.1)",
)
TTFT_MS: Final = Number(
    id="ttft",
    clause=Clause.SUMMARY,
    section="Summary",
    quote=_BUDGETS,
    value=350,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.CONDITIONAL,
    why="true while the step's token budget leaves room for prefill (p99 200 ms measured on 8 H100, vLLM "
    "0.9.2); with a budget of 512 tokens and 325 sessions prefill starves and TTFT is seconds",
)
ITL_P95_MS: Final = Number(
    id="itl-p95",
    clause=Clause.INV_SRVMOD_02,
    section="Invariants and Contracts",
    quote="Under peak 650 concurrent session load, the p95 Inter-Token Latency must not exceed 30 ms.",
    value=30,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.CONDITIONAL,
    why="holds up to about 10,000 tokens/s per p5 (measured: mean 30.5 ms, p95 33.7 ms per request at 10,180 "
    "tokens/s on 8 H100); the text doesn't say whether p95 is over tokens or over requests",
)
SCALE_OUT_ITL_MS: Final = Number(
    id="scale-out-itl",
    clause=Clause.INV_SRVMOD_02,
    section="Invariants and Contracts",
    quote="Hardware capacity scaling triggers automatically if ITL breaches 38 ms for > 60 seconds.",
    value=38,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.CONDITIONAL,
    why="a usable trigger on a fleet sized for the traffic; at 325 sessions per engine the steady ITL is "
    "42 to 51 ms (512/512 tokens), so on one node it would fire for ever",
)
SCALE_OUT_AFTER_SECONDS: Final = Number(
    id="scale-out-after",
    clause=Clause.INV_SRVMOD_02,
    section="Invariants and Contracts",
    quote="Hardware capacity scaling triggers automatically if ITL breaches 38 ms for > 60 seconds.",
    value=60,
    unit=Unit.SECONDS,
    verdict=Verdict.TRUE,
    why="a choice, not a fact; a new p5 needs minutes to boot and load weights, so the trigger is early by "
    "less than what it triggers takes",
)

# Hardware and tensor parallelism --------------------------------------------------------------------------

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

# PagedAttention and KV cache ------------------------------------------------------------------------------

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
    why="vLLM keeps (1 - utilisation) of the memory and what a profile run needs: together 5 GB at a "
    "utilisation of 0.95 or more, about 9 GB at the default of 0.92",
)
KV_CACHE_GB_PER_GPU: Final = Number(
    id="kv-cache-per-gpu",
    clause=Clause.MC_KV_01,
    section="2. PagedAttention & KV-Cache Sizing [MC-KV-01]",
    quote="Peak KV-Cache Allocation: 80 GB - 17.5 GB (Weights) - 5 GB (CUDA Overhead) = 57.5 GB/GPU.",
    value=57.5,
    unit=Unit.GIGABYTES,
    verdict=Verdict.CONDITIONAL,
    why="true at a memory utilisation of 0.92 (vLLM's default since 0.22) with at most 2.3 GiB beside the "
    "weights; 54.6 to 58.4 GB for 5.0 to 1.5 GiB",
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

# Batching -------------------------------------------------------------------------------------------------

JOIN_MS: Final = Number(
    id="join",
    clause=Clause.MC_CB_01,
    section="3. Continuous Iteration-Level Batching [MC-CB-01]",
    quote="New requests enter the next iteration cycle within <= 10 ms without waiting for running "
    "sequences to finish.",
    value=10,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.FALSE,
    why="a request joins at the next step, and a step takes 12 to 17 ms with one session and 42 to 51 ms "
    "with 325; the mean wait is below 10 ms only while a step is below 20 ms. The second half is true",
)

# Overview -------------------------------------------------------------------------------------------------

CONTIGUOUS_WASTE_LOW_PERCENT: Final = Number(
    id="contiguous-waste-low",
    clause=Clause.OVERVIEW,
    section="Detailed Description",
    quote="contiguous KV-cache allocation wastes up to 60-80% of VRAM through pre-allocated memory buffers",
    value=60,
    unit=Unit.PERCENT,
    verdict=Verdict.TRUE,
    why="PagedAttention paper (arXiv 2309.06180), of the KV cache rather than of all VRAM",
)
CONTIGUOUS_WASTE_HIGH_PERCENT: Final = Number(
    id="contiguous-waste-high",
    clause=Clause.OVERVIEW,
    section="Detailed Description",
    quote="contiguous KV-cache allocation wastes up to 60-80% of VRAM through pre-allocated memory buffers",
    value=80,
    unit=Unit.PERCENT,
    verdict=Verdict.TRUE,
    why="PagedAttention paper (arXiv 2309.06180), of the KV cache rather than of all VRAM",
)
DIAGRAM_WEIGHTS_GB_PER_GPU: Final = Number(
    id="diagram-weights-per-gpu",
    clause=Clause.OVERVIEW,
    section="Detailed Description",
    quote="FP8 Weight Quantization (Reduces VRAM per GPU to 35 GB)",
    value=35,
    unit=Unit.GIGABYTES,
    verdict=Verdict.FALSE,
    why="contradicts the 17.5 GB of MC-KV-01: 35 GB per GPU is bf16 at TP 4 (35.3) or FP8 at TP 2 (36.3)",
)
ALL_REDUCE_MS: Final = Number(
    id="all-reduce",
    clause=Clause.OVERVIEW,
    section="Detailed Description",
    quote="(Execution Time: < 1.8 ms)",
    value=1.8,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.CONDITIONAL,
    why="true per all-reduce (37 us at 325 rows); false per step, which has 161 of them: 5.9 ms at 325 rows, "
    "below 1.8 ms only up to about 31 rows",
)
INCIDENT_TTFT_MS: Final = Number(
    id="incident-ttft",
    clause=Clause.SUMMARY,
    section="Summary",
    quote="naive HuggingFace static batching caused head-of-line blocking and 6,000 ms TTFT stalls",
    value=6_000,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.UNKNOWN,
    why="the post-mortem of INC-5202 isn't at hand; static batching does stall a request until the batch ends",
)

# Criteria and comparison ----------------------------------------------------------------------------------


def _weight(id: str, quote: str, value: float) -> Number[float]:
    return Number(
        id=id,
        clause=Clause.CRITERIA,
        section="Criteria and weights",
        quote=quote,
        value=value,
        unit=Unit.WEIGHT,
        verdict=Verdict.TRUE,
        why="a choice of its owners; the four weights add up to 1",
    )


WEIGHT_ITL: Final = _weight("weight-itl", "| 0.35 | Elena Rostova (Head of ML Eng) |", 0.35)
WEIGHT_TTFT: Final = _weight("weight-ttft", "| 0.30 | Financial Assistant UX Standard |", 0.30)
WEIGHT_CONCURRENCY: Final = _weight("weight-concurrency", "| 0.20 | Cloud AI FinOps Policy |", 0.20)
WEIGHT_HEAD_OF_LINE: Final = _weight("weight-head-of-line", "| 0.15 | Marcus Vance (Lead Architect) |", 0.15)

OPTION_A_ITL_MS: Final = Number(
    id="option-a-itl",
    clause=Clause.COMPARISON,
    section="Comparison",
    quote="TP=8 across A100s | 185 ms (Spikes to 6,000ms)",
    value=185,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.UNKNOWN,
    why="no measurement is given; another GPU and another TP than the other two, so not comparable",
)
OPTION_A_TENSOR_PARALLEL_SIZE: Final = Number(
    id="option-a-tensor-parallel-size",
    clause=Clause.COMPARISON,
    section="Comparison",
    quote="TP=8 across A100s | 185 ms (Spikes to 6,000ms)",
    value=8,
    unit=Unit.GPUS,
    verdict=Verdict.UNKNOWN,
    why="a statement about the former system, which isn't at hand",
)
OPTION_B_ITL_MS: Final = Number(
    id="option-b-itl",
    clause=Clause.COMPARISON,
    section="Comparison",
    quote="| Paged KV-cache | TP=4 on H100 | 24 ms |",
    value=24,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.FALSE,
    why="650 sessions on one engine give 50 to 77 ms (128/1024 and 512/512 tokens), two engines of one "
    "node 30 to 43 ms; reached on 3 nodes at 512/512",
)
OPTION_C_ITL_MS: Final = Number(
    id="option-c-itl",
    clause=Clause.COMPARISON,
    section="Comparison",
    quote="| TP=4 on H100 SXM5 | 22 ms (Smooth streaming) |",
    value=22,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.FALSE,
    why="650 sessions on one engine give 61 to 90 ms (128/1024 and 512/512 tokens), two engines of one "
    "node 36 to 51 ms; reached on 5 nodes at 512/512",
)
OPTION_C_ITL_CEILING_MS: Final = Number(
    id="option-c-itl-ceiling",
    clause=Clause.COMPARISON,
    section="Comparison",
    quote="Selected: Sub-25ms ITL, zero fragmentation, rapid model iteration.",
    value=25,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.CONDITIONAL,
    why="true with about 80 sessions per engine at 512/512 tokens, not with 325 or 650",
)

# Open decision --------------------------------------------------------------------------------------------

DRAFT_MODEL_PARAMETERS_BILLIONS: Final = Number(
    id="draft-model",
    clause=Clause.DEC_SRVMOD_01,
    section="Open Decisions",
    quote="Speculative Decoding with a Llama-3-1B draft model",
    value=1,
    unit=Unit.PARAMETERS,
    verdict=Verdict.UNKNOWN,
    why="in billions. Llama 3 has no 1B model; the nearest with its vocabulary is Llama-3.2-1B-Instruct",
)
DRAFT_TOKENS_PER_SECOND_PER_SESSION: Final = Number(
    id="speculative-speed",
    clause=Clause.DEC_SRVMOD_01,
    section="Open Decisions",
    quote="should be activated to boost decoding speed to 45 tokens/sec/user",
    value=45,
    unit=Unit.TOKENS_PER_SECOND_PER_SESSION,
    verdict=Verdict.CONDITIONAL,
    why="45 tokens/s is 22.2 ms: a draft model helps small batches (about 1.6x at 64 sessions) and costs "
    "throughput beyond about 128 to 200 per engine; the same is reached with fewer sessions per engine",
)
