"""Checkable sentences of the specification that carry no number of their own."""

from typing import Final

from srvmod.contract.claims import Claim
from srvmod.contract.words import Clause, Verdict

STATEMENTS: Final[tuple[Claim, ...]] = (
    Claim(
        id="paged-attention-zero-waste",
        clause=Clause.SUMMARY,
        section="Summary",
        quote="virtualized PagedAttention KV-cache management eliminating internal memory fragmentation",
        verdict=Verdict.FALSE,
        why="reduces, not eliminates: the last block of each sequence is half empty on average",
    ),
    Claim(
        id="zero-fragmentation",
        clause=Clause.COMPARISON,
        section="Comparison",
        quote="Selected: Sub-25ms ITL, zero fragmentation, rapid model iteration.",
        verdict=Verdict.FALSE,
        why="contradicts the 3.8 % of MC-KV-01; 0.37 % at 2,048 tokens, never zero",
    ),
    Claim(
        id="static-batching-forbidden",
        clause=Clause.INV_SRVMOD_01,
        section="Invariants and Contracts",
        quote="Static or naive request-level batching is strictly forbidden for interactive streaming workloads.",
        verdict=Verdict.TRUE,
        why="a rule; vLLM batches per iteration unless its sequence limit, scheduler or prefill is changed",
    ),
    Claim(
        id="tgi-static",
        clause=Clause.COMPARISON,
        section="Comparison",
        quote="| Option A: HuggingFace TGI Default | Static request batching | Pre-allocated static buffers |",
        verdict=Verdict.FALSE,
        why="today's TGI batches continuously and pages its KV cache; it was static in no release that is "
        "still supported",
    ),
    Claim(
        id="leave-at-once",
        clause=Clause.MC_CB_01,
        section="3. Continuous Iteration-Level Batching [MC-CB-01]",
        quote="Completed sequences exit the batch immediately, liberating KV-cache pages.",
        verdict=Verdict.TRUE,
        why="at the end of the step in which they complete; with prefix caching their blocks stay as cache "
        "until they are needed",
    ),
    Claim(
        id="bi-directional",
        clause=Clause.MC_SE_01,
        section="4. Streaming Inference Endpoint Contract [MC-SE-01]",
        quote="Bi-directional HTTP/2 Server-Sent Events (SSE) streaming endpoint",
        verdict=Verdict.FALSE,
        why="server-sent events go one way, from server to client, over HTTP/1.1 or HTTP/2; a client only "
        "sends its request and closes the stream to cancel",
    ),
    Claim(
        id="grpc",
        clause=Clause.OVERVIEW,
        section="Detailed Description",
        quote="SSE / gRPC Bi-Directional Streaming Stream",
        verdict=Verdict.FALSE,
        why="vLLM's OpenAI API has no gRPC; the product serves SSE",
    ),
    Claim(
        id="openai-api",
        clause=Clause.MC_SE_01,
        section="4. Streaming Inference Endpoint Contract [MC-SE-01]",
        quote="OpenAI-compatible `/v1/chat/completions` API with `stream: true`.",
        verdict=Verdict.TRUE,
        why="vLLM serves it, one event per token with stream interval 1",
    ),
    Claim(
        id="tcp-nodelay",
        clause=Clause.MC_SE_01,
        section="4. Streaming Inference Endpoint Contract [MC-SE-01]",
        quote="Proxy sidecars flush individual tokens immediately without TCP Nagle buffering (`TCP_NODELAY = true`).",
        verdict=Verdict.CONDITIONAL,
        why="Envoy and uvicorn set TCP_NODELAY and don't buffer by themselves; compression, external "
        "processing, or another proxy on the way can hold tokens back",
    ),
    Claim(
        id="numa-boundary",
        clause=Clause.INV_SRVMOD_03,
        section="Invariants and Contracts",
        quote="Splitting tensor parallel groups across PCIe buses or multi-node networks is prohibited.",
        verdict=Verdict.CONDITIONAL,
        why="kept as 'joined by NVLink and on one NUMA node': every GPU of a p5 has a PCIe root of its "
        "own, so a group on one PCIe bus doesn't exist; traffic between them goes over NVLink",
    ),
    Claim(
        id="nvlink-switch",
        clause=Clause.INV_SRVMOD_03,
        section="Invariants and Contracts",
        quote="Tensor parallel worker groups must reside on GPUs connected via local NVLink switches.",
        verdict=Verdict.TRUE,
        why="all 8 GPUs of a p5 share its NVSwitches; the rule is kept by whole islands of one node",
    ),
    Claim(
        id="industry-leading",
        clause=Clause.COMPARISON,
        section="Result",
        quote="vLLM continuous batching and PagedAttention provide industry-leading throughput and sub-30ms "
        "streaming latency.",
        verdict=Verdict.FALSE,
        why="TensorRT-LLM is faster on the same hardware in every published pair that was found; both "
        "stay below 30 ms only with few enough sessions per engine",
    ),
    Claim(
        id="triton-friction",
        clause=Clause.COMPARISON,
        section="Comparison",
        quote="Rejected: Complex C++ engine compilation; high operational friction.",
        verdict=Verdict.CONDITIONAL,
        why="a judgement; TensorRT-LLM's PyTorch back end no longer compiles engines",
    ),
    Claim(
        id="nvlink-errors",
        clause=Clause.G_1,
        section="Explicit Unknowns",
        quote="NVLink cross-GPU interconnect error rates under sustained 24/7 FP8 matrix multiplication load (G-1).",
        verdict=Verdict.UNKNOWN,
        why="settled by the replay, recovery and CRC counters that dcgm-exporter reads on the fleet",
    ),
    Claim(
        id="warm-up",
        clause=Clause.G_2,
        section="Explicit Unknowns",
        quote="Time-to-warmup delay when swapping 70B FP8 model checkpoints from local NVMe instance "
        "storage into GPU VRAM (G-2).",
        verdict=Verdict.UNKNOWN,
        why="72.65 GB are 2.8 s at the best published rate (26.4 GB/s, GPUDirect Storage) and 17 s at a "
        "default of 4.3 GB/s; the p5's own NVMe rate and the compile and graph-capture time on top "
        "weren't found",
    ),
    Claim(
        id="self-check-latency",
        clause=Clause.VERIFICATION,
        section="Verification",
        quote="Continuous batching bounds TTFT to <= 350 ms and ITL to <= 30 ms.",
        verdict=Verdict.FALSE,
        why="batching bounds neither: both follow from sessions per engine and the token budget of a step",
    ),
    Claim(
        id="self-check-memory",
        clause=Clause.VERIFICATION,
        section="Verification",
        quote="PagedAttention and FP8 quantization reduce VRAM overhead and prevent fragmentation.",
        verdict=Verdict.CONDITIONAL,
        why="they reduce both; external fragmentation is prevented, internal isn't",
    ),
)
