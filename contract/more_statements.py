"""More checkable sentences without a number: the overview, the candidates' table, memory, hardware, next steps."""

from typing import Final

from srvmod.contract.claims import Claim
from srvmod.contract.words import Clause, Verdict

_HARDWARE = "1. Hardware Topology & Tensor Parallelism [MC-HW-01]"
_MEMORY = "2. PagedAttention & KV-Cache Sizing [MC-KV-01]"
_BATCHING = "3. Continuous Iteration-Level Batching [MC-CB-01]"

MORE_STATEMENTS: Final[tuple[Claim, ...]] = (
    Claim(
        id="static-batching-locks",
        clause=Clause.OVERVIEW,
        section="Detailed Description",
        quote="Naive static batching locks execution batches until the longest sequence completes",
        verdict=Verdict.TRUE,
        why="that is what static batching means: Orca (OSDI 2022) measured it against iteration-level scheduling",
    ),
    Claim(
        id="decode-memory-bound",
        clause=Clause.OVERVIEW,
        section="Detailed Description",
        quote="compute-bound prefill (prompt ingestion) and memory-bandwidth-bound decode (token generation)",
        verdict=Verdict.CONDITIONAL,
        why="decoding reads the same weights for every batch, so arithmetic overtakes reading as the batch grows",
    ),
    Claim(
        id="megatron-barrier",
        clause=Clause.OVERVIEW,
        section="Detailed Description",
        quote="Megatron-LM All-Reduce Barrier",
        verdict=Verdict.CONDITIONAL,
        why="vLLM splits layers as Megatron-LM does, with two all-reduces per layer, but runs its own kernels or NCCL",
    ),
    Claim(
        id="non-contiguous-pages",
        clause=Clause.OVERVIEW,
        section="Detailed Description",
        quote="Virtual Memory PagedAttention (Non-Contiguous KV-Cache Pages)",
        verdict=Verdict.TRUE,
        why="vLLM maps each sequence's blocks through a block table",
    ),
    Claim(
        id="weighted-selection",
        clause=Clause.CRITERIA,
        section="Result",
        quote="Option C is selected.",
        verdict=Verdict.UNKNOWN,
        why="four weighted criteria are listed but no candidate is scored by them: the choice can't be computed again",
    ),
    Claim(
        id="density-minimizes-bills",
        clause=Clause.CRITERIA,
        section="Criteria and weights",
        quote="Maximizing concurrent throughput per GPU node directly minimizes multi-million-dollar cloud bills.",
        verdict=Verdict.CONDITIONAL,
        why="cost per token falls with sessions per engine, but so does the speed of each session",
    ),
    Claim(
        id="no-head-of-line",
        clause=Clause.CRITERIA,
        section="Criteria and weights",
        quote="Long prompt ingests must not stall active generation across unrelated user streams (INC-5202).",
        verdict=Verdict.CONDITIONAL,
        why="a step that carries prompt tokens takes longer for every stream in it; chunks bound by how much",
    ),
    Claim(
        id="option-a-buffers",
        clause=Clause.COMPARISON,
        section="Comparison",
        quote="Pre-allocated static buffers",
        verdict=Verdict.FALSE,
        why="TGI pages its KV cache since 0.9 (2023); what the company ran before isn't shown",
    ),
    Claim(
        id="option-b-in-flight",
        clause=Clause.COMPARISON,
        section="Comparison",
        quote="| Option B: Triton + TensorRT-LLM | In-flight batching | Paged KV-cache |",
        verdict=Verdict.TRUE,
        why="both are documented features of TensorRT-LLM, so they don't tell options B and C apart",
    ),
    Claim(
        id="option-c-batching",
        clause=Clause.COMPARISON,
        section="Comparison",
        quote="| Continuous iteration batching | PagedAttention virtual memory |",
        verdict=Verdict.TRUE,
        why="vLLM's scheduler makes a batch per step; PagedAttention is where it began",
    ),
    Claim(
        id="model-iteration",
        clause=Clause.COMPARISON,
        section="Comparison",
        quote="rapid model iteration",
        verdict=Verdict.CONDITIONAL,
        why="a judgement: vLLM loads a checkpoint without a build, and so does TensorRT-LLM's PyTorch back end today",
    ),
    Claim(
        id="eight-h100-sxm5",
        clause=Clause.MC_HW_01,
        section=_HARDWARE,
        quote="hosting 8 NVIDIA H100 80GB SXM5 GPUs",
        verdict=Verdict.TRUE,
        why="EC2 describes p5.48xlarge with 8 H100 of 81,920 MiB",
    ),
    Claim(
        id="model-exists",
        clause=Clause.MC_HW_01,
        section=_HARDWARE,
        quote="Model: `meta-llama/Meta-Llama-3-70B-Instruct`.",
        verdict=Verdict.TRUE,
        why="published on the Hugging Face hub in bf16 with a context of 8,192; FP8 weights are made from it",
    ),
    Claim(
        id="well-exceeding",
        clause=Clause.MC_KV_01,
        section=_MEMORY,
        quote="well exceeding the 650 concurrent target",
        verdict=Verdict.CONDITIONAL,
        why="memory isn't what limits the sessions: latency is reached long before the KV cache is full",
    ),
    Claim(
        id="iteration-level",
        clause=Clause.MC_CB_01,
        section=_BATCHING,
        quote="Scheduler executes at the iteration level rather than the request level.",
        verdict=Verdict.TRUE,
        why="vLLM schedules before every step",
    ),
    Claim(
        id="continuous-batching-always",
        clause=Clause.INV_SRVMOD_01,
        section="Invariants and Contracts",
        quote="Production LLM serving engines must operate with iteration-level continuous batching.",
        verdict=Verdict.TRUE,
        why="a rule; srvmod check names the options that would undo it",
    ),
    Claim(
        id="self-check-topology",
        clause=Clause.VERIFICATION,
        section="Verification",
        quote="4-way Tensor Parallelism pinned to dedicated NVLink GPU domains.",
        verdict=Verdict.CONDITIONAL,
        why="a p5 has one NVLink domain of 8 GPUs, not two of 4: what is dedicated is a NUMA node",
    ),
    Claim(
        id="no-command-run",
        clause=Clause.VERIFICATION,
        section="Verification",
        quote="No validator was supplied, so no command was run.",
        verdict=Verdict.TRUE,
        why="the specification's own PASS marks therefore rest on nothing that was executed",
    ),
    Claim(
        id="staging-proves",
        clause=Clause.VERIFICATION,
        section="Next steps",
        quote="Conduct staging load benchmark streaming 650 concurrent sessions to verify p95 ITL <= 30 ms and zero "
        "OOM errors.",
        verdict=Verdict.CONDITIONAL,
        why="a load test proves the mix of lengths that it sends, on the number of nodes that it runs on",
    ),
)
