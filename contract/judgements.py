"""How each claim was judged, when a conditional one holds, and what would settle an unknown one."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Method(StrEnum):
    """How a claim was judged."""

    ARITHMETIC = "arithmetic"
    """Computed from facts about model and hardware."""
    MODEL = "capacity model"
    """Computed by the calibrated model; the figures are made anew whenever it changes."""
    MEASUREMENT = "published measurement"
    SOURCE = "source or documentation read"
    CHOICE = "a choice or a rule"
    """Nothing to find out: its owners declare it."""
    TEXT = "the text itself"
    """The text contradicts itself, or gives no evidence."""


@dataclass(frozen=True)
class Judgement:
    """How, and for conditional claims when; for unknown ones what would settle it."""

    method: Method
    condition: str | None = None


_A, _M, _P, _S = Method.ARITHMETIC, Method.MODEL, Method.MEASUREMENT, Method.SOURCE
_C, _T = Method.CHOICE, Method.TEXT

JUDGEMENTS: Final[Mapping[str, Judgement]] = {
    "sessions": Judgement(_M, "with as many nodes as the plan of the declared traffic mix says"),
    "output-tokens-per-second": Judgement(_M, "with a mean ITL of at most 23.2 ms at 650 sessions, or more sessions"),
    "ttft": Judgement(_M, "while prompts fill at most 80 % of the step's token budget"),
    "itl-p95": Judgement(_M, "with at most the sessions per engine that the plan says, p95 taken over requests"),
    "scale-out-itl": Judgement(_M, "on a fleet that is sized for its traffic, where steady ITL is below 38 ms"),
    "scale-out-after": Judgement(_C),
    "gpus-per-node": Judgement(_S),
    "nvlink": Judgement(_S),
    "tensor-parallel-size": Judgement(_A),
    "engines-per-node": Judgement(_S, "with kubelets that align pods to one NUMA node, and pods of 4 GPUs only"),
    "kv-block": Judgement(_S),
    "weights": Judgement(_A),
    "weights-per-gpu": Judgement(_A),
    "gpu-memory": Judgement(_S),
    "cuda-overhead": Judgement(_M, "at the memory utilisation below, or more"),
    "kv-cache-per-gpu": Judgement(_M, "at the default utilisation with at most 2.3 GiB beside the weights"),
    "concurrent-contexts": Judgement(_A, "per node, not per engine, and with an FP8 KV cache"),
    "context-tokens": Judgement(_C),
    "fragmentation-before": Judgement(_P, "for contiguous allocation in general"),
    "fragmentation": Judgement(_A, "for sequences longer than 197 tokens on average"),
    "join": Judgement(_M),
    "contiguous-waste-low": Judgement(_P),
    "contiguous-waste-high": Judgement(_P),
    "diagram-weights-per-gpu": Judgement(_A),
    "all-reduce": Judgement(_M, "for one all-reduce, or for all of a step up to the rows below"),
    "incident-ttft": Judgement(_T, "the post-mortem of INC-5202"),
    "weight-itl": Judgement(_C),
    "weight-ttft": Judgement(_C),
    "weight-concurrency": Judgement(_C),
    "weight-head-of-line": Judgement(_C),
    "option-a-itl": Judgement(_T, "the former system's measurements"),
    "option-a-tensor-parallel-size": Judgement(_T, "the former system's configuration"),
    "option-b-itl": Judgement(_M),
    "option-c-itl": Judgement(_M),
    "option-c-itl-ceiling": Judgement(_M, "with at most the sessions per engine below"),
    "draft-model": Judgement(_S, "its owner names the model: Llama 3 has none of this size"),
    "speculative-speed": Judgement(
        _M, "with at most the sessions per engine below, where as many drafts are taken as assumed (to be measured)"
    ),
    "paged-attention-zero-waste": Judgement(_A),
    "zero-fragmentation": Judgement(_A),
    "static-batching-forbidden": Judgement(_C),
    "tgi-static": Judgement(_S),
    "leave-at-once": Judgement(_S),
    "bi-directional": Judgement(_S),
    "grpc": Judgement(_S),
    "openai-api": Judgement(_S),
    "tcp-nodelay": Judgement(_S, "without compression, external processing or another proxy on the way"),
    "numa-boundary": Judgement(_S, "read as: on one NUMA node, with all traffic over NVLink"),
    "nvlink-switch": Judgement(_S),
    "industry-leading": Judgement(_P),
    "triton-friction": Judgement(_S, "with engines that are compiled ahead of time"),
    "nvlink-errors": Judgement(_T, "months of NVLink error counters of the company's own fleet"),
    "warm-up": Judgement(_M, "one timed start of an engine on a p5: weights from NVMe, compilation, graph capture"),
    "self-check-latency": Judgement(_M),
    "self-check-memory": Judgement(_A, "for external fragmentation"),
    "static-batching-locks": Judgement(_P),
    "decode-memory-bound": Judgement(_M, "up to the rows below; beyond, arithmetic takes longer than reading weights"),
    "megatron-barrier": Judgement(_S, "as a name for the way of splitting, not for the kernels"),
    "non-contiguous-pages": Judgement(_S),
    "weighted-selection": Judgement(_T, "a score of each candidate for each criterion"),
    "density-minimizes-bills": Judgement(_M, "as long as the latency targets still hold at that density"),
    "no-head-of-line": Judgement(_M, "with chunked prefill and a token budget that bounds the longest step"),
    "option-a-buffers": Judgement(_S),
    "option-b-in-flight": Judgement(_S),
    "option-c-batching": Judgement(_S),
    "model-iteration": Judgement(_S, "compared with engines that are compiled ahead of time"),
    "eight-h100-sxm5": Judgement(_S),
    "model-exists": Judgement(_S),
    "well-exceeding": Judgement(_M, "for contexts of 2,048 tokens on a whole node, or with an FP8 KV cache per engine"),
    "iteration-level": Judgement(_S),
    "continuous-batching-always": Judgement(_C),
    "self-check-topology": Judgement(_S, "read as: two groups of 4 GPUs, each on its own NUMA node"),
    "no-command-run": Judgement(_T),
    "staging-proves": Judgement(_T, "with production's mix of lengths, on the nodes of the plan"),
}
"""By claim id; a test holds it complete."""
