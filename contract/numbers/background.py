"""Numbers of the overview, of the comparison of candidates and of the open decision."""

from typing import Final

from srvmod.contract.claims import Number
from srvmod.contract.words import Clause, Unit, Verdict

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
    why="a step has 161 all-reduces, two per layer and one more",
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
    why="no measurement is given, nor whether 650 are on one engine or on a fleet; not reached on one node",
)
OPTION_C_ITL_MS: Final = Number(
    id="option-c-itl",
    clause=Clause.COMPARISON,
    section="Comparison",
    quote="| TP=4 on H100 SXM5 | 22 ms (Smooth streaming) |",
    value=22,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.FALSE,
    why="no measurement is given, nor whether 650 are on one engine or on a fleet; not reached on one node",
)
OPTION_C_ITL_CEILING_MS: Final = Number(
    id="option-c-itl-ceiling",
    clause=Clause.COMPARISON,
    section="Comparison",
    quote="Selected: Sub-25ms ITL, zero fragmentation, rapid model iteration.",
    value=25,
    unit=Unit.MILLISECONDS,
    verdict=Verdict.CONDITIONAL,
    why="a matter of sessions per engine, not of the product that serves them",
)


DRAFT_MODEL_PARAMETERS_BILLIONS: Final = Number(
    id="draft-model",
    clause=Clause.DEC_SRVMOD_01,
    section="Open Decisions",
    quote="Speculative Decoding with a Llama-3-1B draft model",
    value=1,
    unit=Unit.PARAMETERS,
    verdict=Verdict.UNKNOWN,
    why="in billions. Llama 3 was published with 8B and 70B only; the nearest with its vocabulary is "
    "Llama-3.2-1B-Instruct (1.24B parameters), which can draft for it",
)
DRAFT_TOKENS_PER_SECOND_PER_SESSION: Final = Number(
    id="speculative-speed",
    clause=Clause.DEC_SRVMOD_01,
    section="Open Decisions",
    quote="should be activated to boost decoding speed to 45 tokens/sec/user",
    value=45,
    unit=Unit.TOKENS_PER_SECOND_PER_SESSION,
    verdict=Verdict.CONDITIONAL,
    why="45 tokens/s is 22.2 ms. A draft model helps small batches and costs throughput in large ones (vLLM: up to "
    "1.5x faster at 1 request/s, 1.4 to 1.8x slower at high load, Llama-3-70B on 4 H100, blog of 2024-10-17); fewer "
    "sessions per engine reach the same without it",
)
