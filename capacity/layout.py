"""What is sized: the traffic mix, the latency targets, and how an engine lies on its hardware."""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from srvmod.capacity.allreduce import measured_sizes
from srvmod.capacity.stacks import Stack
from srvmod.contract import (
    ENGINES_PER_NODE,
    ITL_P95_MS,
    KV_BLOCK_TOKENS,
    P5_48XLARGE,
    TENSOR_PARALLEL_SIZE,
    TTFT_MS,
    Flops,
    InstanceType,
    KvCacheDtype,
    Milliseconds,
    ModelShape,
)

DRAFT_BYTES = 2
"""Weights of a model that drafts: published ones (Llama-3.2-1B, EAGLE-3 heads) are bf16."""
MOST_SESSIONS = 1_000_000
"""More than any fleet of p5 serves; a bound so that the planner's search ends."""


CEILING_ITL_P95 = Milliseconds(float(ITL_P95_MS.value))
CEILING_TTFT = Milliseconds(float(TTFT_MS.value))


class CapacityError(ValueError):
    """A plan that can't be made. `field` names the argument that is wrong, `allowed` what it may be."""

    def __init__(self, field: str, value: object, problem: str, allowed: str) -> None:
        super().__init__(f"{field} = {value}: {problem}; allowed: {allowed}")
        self.field = field
        self.value = value
        self.problem = problem
        self.allowed = allowed


def _require(ok: bool, field: str, value: object, problem: str, allowed: str) -> None:
    if not ok:
        raise CapacityError(field, value, problem, allowed)


def _require_count(value: float, field: str, most: int) -> None:
    ok = math.isfinite(value) and 1 <= value <= most and float(value).is_integer()
    _require(ok, field, value, "isn't a usable count", f"a whole number from 1 to {most:,}")


@dataclass(frozen=True)
class Traffic:
    """A traffic mix: sessions that stream at the same time, and the mean request of each.

    `prefix_hit_rate` is the share of prompt tokens found in the prefix cache. `tokens_per_second` is what all
    sessions together must get; None means that only the latency targets count.
    """

    sessions: int
    prompt_tokens: int
    output_tokens: int
    prefix_hit_rate: float = 0.0
    tokens_per_second: float | None = None

    def __post_init__(self) -> None:
        """Raise CapacityError on counts that aren't positive, finite and bounded."""
        _require_count(self.sessions, "sessions", MOST_SESSIONS)
        _require_count(self.prompt_tokens, "prompt_tokens", 10_000_000)
        _require_count(self.output_tokens, "output_tokens", 10_000_000)
        _require(
            0 <= self.prefix_hit_rate <= 1,
            "prefix_hit_rate",
            self.prefix_hit_rate,
            "isn't a share",
            "a number from 0 to 1",
        )
        rate = self.tokens_per_second
        _require(
            rate is None or (math.isfinite(rate) and rate > 0),
            "tokens_per_second",
            rate,
            "isn't a rate",
            "a positive number, or none",
        )

    @property
    def computed_prompt(self) -> float:
        """Tokens of a prompt that aren't found in the prefix cache."""
        return self.prompt_tokens * (1 - self.prefix_hit_rate)

    @property
    def prefill_per_output_token(self) -> float:
        """Prompt tokens to compute for each token that is generated."""
        return self.computed_prompt / self.output_tokens

    @property
    def mean_context(self) -> float:
        """Tokens in the KV cache per session, averaged over its life."""
        return self.prompt_tokens + self.output_tokens / 2


class Per(StrEnum):
    """What a 95th percentile of inter-token latency is taken over. The specification doesn't say."""

    REQUEST = "request"
    """Requests, each by its own mean: how MLPerf counts time per output token."""
    GAP = "gap"
    """Every gap between two tokens: how vLLM's histogram counts, and harder to hold."""


@dataclass(frozen=True)
class Slo:
    """Latency targets in milliseconds: p95 inter-token latency, over what it is taken, and time to first token."""

    itl_p95: Milliseconds = CEILING_ITL_P95
    ttft: Milliseconds = CEILING_TTFT
    per: Per = Per.REQUEST

    def __post_init__(self) -> None:
        """Raise CapacityError on targets that aren't positive and finite."""
        for name, value in (("itl_p95", self.itl_p95), ("ttft", self.ttft)):
            _require(math.isfinite(value) and value > 0, name, value, "isn't a time", "a positive number of ms")


@dataclass(frozen=True)
class Layout:
    """How engines lie on the hardware and how each is set up.

    `max_num_batched_tokens` is vLLM's token budget of one step, `gpu_memory_utilization` its share of GPU
    memory, `overhead_gib` what a GPU needs beside weights and KV cache (activations, NCCL, CUDA context, graphs); it
    is estimated when left out (capacity.memory). Weights of less than 2 bytes per element are quantised: 1 is FP8, 0.5
    is FP4. `draft` is a model that proposes tokens on the same GPUs: it takes memory, and step times don't count it.
    `graph_rows` are the most rows of a step with a captured CUDA graph, as many as sequences when left out.
    """

    instance: InstanceType = P5_48XLARGE
    tensor_parallel_size: int = TENSOR_PARALLEL_SIZE.value
    engines_per_node: int = ENGINES_PER_NODE.value
    kv_cache_dtype: KvCacheDtype = KvCacheDtype.FP8
    weight_bytes_per_element: float = 1
    block_tokens: int = KV_BLOCK_TOKENS.value
    max_num_batched_tokens: int = 2_048
    gpu_memory_utilization: float = 0.92
    max_num_seqs: int = 512
    overhead_gib: float | None = None
    stack: Stack = Stack.VLLM
    draft: ModelShape | None = None
    graph_rows: int | None = None

    def __post_init__(self) -> None:
        """Raise CapacityError on an engine that the hardware can't hold."""
        tp = self.tensor_parallel_size
        sizes = (1, *measured_sizes(self.stack))
        weights = self.weight_bytes_per_element
        formats = (0.5, 1, 2) if self.instance.gpu.fp4 else (1, 2)
        _require(
            weights in formats,
            "weight_bytes_per_element",
            weights,
            f"isn't a format that {self.instance.gpu.name} computes with",
            f"one of {formats} (FP4, FP8, bf16)" if 0.5 in formats else f"one of {formats} (FP8, bf16)",
        )
        _require(tp in sizes, "tensor_parallel_size", tp, "wasn't measured", f"one of {sizes}")
        most = self.instance.gpus // tp
        _require(
            1 <= self.engines_per_node <= most,
            "engines_per_node",
            self.engines_per_node,
            f"engines of {tp} GPUs don't fit on {self.instance.gpus} GPUs",
            f"1 to {most}",
        )
        _require_count(self.max_num_batched_tokens, "max_num_batched_tokens", 1_000_000)
        _require_count(self.max_num_seqs, "max_num_seqs", 100_000)
        _require_count(self.block_tokens, "block_tokens", 1_024)
        if self.graph_rows is not None:
            _require_count(self.graph_rows, "graph_rows", 1_000_000)
        gib = self.overhead_gib
        _require(
            gib is None or (math.isfinite(gib) and gib >= 0), "overhead_gib", gib, "isn't a size", "0 or more, or none"
        )
        _require(
            0 < self.gpu_memory_utilization <= 1,
            "gpu_memory_utilization",
            self.gpu_memory_utilization,
            "isn't a share",
            "more than 0, at most 1",
        )

    @property
    def quantised(self) -> bool:
        """Whether the linear layers hold less than bf16."""
        return self.weight_bytes_per_element < 2

    @property
    def of_draft(self) -> "Layout":
        """How a model that drafts lies on the same GPUs: split alike, its weights not quantised."""
        return replace(self, weight_bytes_per_element=DRAFT_BYTES, draft=None)

    @property
    def peak_arithmetic(self) -> Flops:
        """The GPU's peak for the weights' format."""
        gpu = self.instance.gpu
        if self.weight_bytes_per_element < 1 and gpu.fp4:
            return gpu.fp4
        return gpu.fp8 if self.quantised else gpu.bf16

    def check_model(self, model: ModelShape) -> None:
        """Raise CapacityError when the model's heads can't be divided over the GPUs."""
        tp = self.tensor_parallel_size
        _require(
            model.heads % tp == 0,
            "tensor_parallel_size",
            tp,
            f"doesn't divide the {model.heads} attention heads of {model.id}",
            f"a divisor of {model.heads}",
        )
