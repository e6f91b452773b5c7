"""Time of one engine step: a roofline with factors fitted to published measurements.

A step advances `decodes` sequences by one token each and computes `prefill` prompt tokens. Its time is the matrix
products (bound by reading weights or by arithmetic, whichever is slower), reading the KV cache, attention over
the prompts, two all-reduces per layer and one more, element-wise work, and the host's own time.
"""

from dataclasses import dataclass

from srvmod.capacity.allreduce import Stack, all_reduce
from srvmod.capacity.layout import Layout
from srvmod.capacity.memory import kv_bytes_per_token_per_gpu, weight_bytes_per_gpu
from srvmod.contract import ModelShape, Seconds

MICROSECOND = 1e-6
MILLISECOND = 1e-3


@dataclass(frozen=True)
class StepParameters:
    """Factors of the step model.

    Fitted on half of 119 published points of 70B models on H100 and H200 (TensorRT-LLM 0.14 to 1.2, vLLM 0.9.2,
    SGLang 0.4.9, MLPerf 4.1 and 5.1): mean absolute error on the other half 7.2 %, 90th percentile 18 %, worst
    25 %. Over seven refits `weight_read` was 0.62 to 0.76, `fp8` 0.63 to 0.70 and `host_ms` 2.8 to 6.5.
    The rest are fixed by assumption. No engine of ours was measured.
    """

    weight_read: float = 0.70
    """Share of memory bandwidth reached when reading FP8 weights."""
    weight_read_bf16: float = 0.80
    fp8: float = 0.65
    """Share of peak FP8 arithmetic reached in large matrix products."""
    bf16: float = 0.78
    output_head: float = 0.70
    kv_read: float = 0.70
    """Share of memory bandwidth reached when reading the KV cache."""
    prefill_attention: float = 0.35
    elementwise_bytes_per_token: float = 16e6
    elementwise: float = 0.80
    host_ms: float = 8.5
    """Host and launch time per step in ms: 8.5 for vLLM 0.9.2, 4.2 for TensorRT-LLM."""
    host_us_per_sequence: float = 2.0


PARAMETERS: dict[Stack, StepParameters] = {
    Stack.VLLM: StepParameters(),
    Stack.TENSORRT_LLM: StepParameters(host_ms=4.2),
}


@dataclass(frozen=True)
class StepTime:
    """Parts of a step, in seconds."""

    matrix_products: float
    kv_read: float
    prefill_attention: float
    all_reduce: float
    elementwise: float
    host: float

    @property
    def total(self) -> Seconds:
        """The whole step."""
        return Seconds(
            self.matrix_products
            + self.kv_read
            + self.prefill_attention
            + self.all_reduce
            + self.elementwise
            + self.host
        )


def step_time(
    model: ModelShape, layout: Layout, *, decodes: float, prefill: float, context: float, prompt: float
) -> StepTime:
    """Time of a step with `decodes` sequences of `context` tokens and `prefill` tokens of prompts `prompt` long.

    Means may be fractions. Everything is per GPU, since the engine's GPUs work in step.
    """
    gpu = layout.instance.gpu
    tp = layout.tensor_parallel_size
    f = PARAMETERS[layout.stack]
    rows = decodes + prefill
    quantised = layout.weight_bytes_per_element == 1
    peak, reached = (gpu.fp8, f.fp8) if quantised else (gpu.bf16, f.bf16)
    read = f.weight_read if quantised else f.weight_read_bf16
    by_memory = weight_bytes_per_gpu(model, layout) / (gpu.memory_bandwidth * read)
    linear_flops = 2 * model.linear_parameters * rows / tp
    head_flops = 2 * model.embedding_parameters * decodes / tp  # only decoding rows need the output head
    by_arithmetic = linear_flops / (peak * reached) + head_flops / (gpu.bf16 * f.output_head)
    kv_bytes = decodes * context * kv_bytes_per_token_per_gpu(model, layout)
    attention_flops = prefill * 4 * model.heads * model.head_dim * (prompt / 2) * model.layers / tp
    return StepTime(
        # A smooth maximum: the two overlap, but not perfectly where they are equal.
        matrix_products=(by_memory**3 + by_arithmetic**3) ** (1 / 3),
        kv_read=kv_bytes / (gpu.memory_bandwidth * f.kv_read),
        prefill_attention=attention_flops / (gpu.bf16 * f.prefill_attention),
        all_reduce=(2 * model.layers + 1) * all_reduce(rows * model.hidden, tp, layout.stack),
        # Norms, activations, quantisation and rotary embedding are repeated on every GPU, not split.
        elementwise=rows * f.elementwise_bytes_per_token / (gpu.memory_bandwidth * f.elementwise),
        host=f.host_ms * MILLISECOND + decodes * f.host_us_per_sequence * MICROSECOND,
    )
