"""Serving stacks: whose scheduler, all-reduce kernels and host code an engine runs."""

from enum import StrEnum


class Stack(StrEnum):
    """A serving stack with a host cost of its own in the fit; the value is how the data's `engine` column writes it."""

    VLLM = "vllm"
    VLLM_0_6 = "vllm06"
    TENSORRT_LLM = "trtllm"
    TRITON = "trtllm-triton"
    SGLANG = "sglang"
    SGLANG_0_3 = "sglang03"
    OTHER = "other"
    """A stack that no point was measured on: the mean of the others."""

    @property
    def all_reduce_table(self) -> str:
        """`framework` of the all-reduce table that stands for this stack."""
        if self in (Stack.TENSORRT_LLM, Stack.TRITON):
            return "TRTLLM"
        return "SGLang" if self in (Stack.SGLANG, Stack.SGLANG_0_3) else "vLLM"

    @property
    def reserves_whole_requests(self) -> bool:
        """Whether a request is admitted only when its whole answer has room in the KV cache (TensorRT-LLM's
        GUARANTEED_NO_EVICT); the others admit on current use and preempt."""
        return self in (Stack.TENSORRT_LLM, Stack.TRITON)


def stack_of(engine: str, version: str) -> Stack:
    """The stack of a measured point. Releases before vLLM 0.7 and SGLang 0.4, whose host code was another, stand apart.

    An engine that isn't known is OTHER, never an error: points of new stacks are scored as what they are, unseen.
    """
    name = engine.strip().lower()
    release = version.strip().lower().removeprefix("v")
    if name in ("vllm", "vllm06"):
        return Stack.VLLM_0_6 if name == "vllm06" or release.startswith(("0.5", "0.6")) else Stack.VLLM
    if name == "sglang":
        return Stack.SGLANG_0_3 if not release or release.startswith(("0.2", "0.3")) else Stack.SGLANG
    return next((stack for stack in Stack if stack.value == name), Stack.OTHER)
