"""Time of one engine step: a roofline with factors fitted to published measurements.

A step advances `decodes` sequences by one token each and computes `prefill` prompt tokens. Its time is the matrix
products (bound by reading weights or by arithmetic, whichever is slower), reading the KV cache, attention over
the prompts, two all-reduces per layer and one more, element-wise work, and the host's own time.

`StepModel` is what a simulation uses: made once for an engine, then asked for each step. `step_time` is the same for
one call. Both are part of the room's public interface and keep their names and arguments.
"""

from dataclasses import dataclass

from srvmod.capacity.allreduce import all_reduce
from srvmod.capacity.layout import Layout
from srvmod.capacity.memory import kv_bytes_per_token_per_gpu, weight_bytes_per_gpu
from srvmod.capacity.parameters import HOST_SEQUENCES, StepParameters, calibration
from srvmod.contract import LLAMA_3_70B, ModelShape, Seconds, to_seconds

MICROSECOND = 1e-6
OUTPUT_HEAD = 0.70
"""Share of peak bf16 arithmetic in the output head; assumed."""
ELEMENTWISE = 0.80
"""Share of memory bandwidth in element-wise kernels; assumed, and only its quotient with `elementwise_bytes` counts."""


@dataclass(frozen=True, slots=True)
class Work:
    """What one step does, over all its sequences. Means may be fractions."""

    decodes: float
    """Sequences that get one token each."""
    context_tokens: float
    """Sum of the decoding sequences' lengths: KV cache that is read."""
    prefill: float = 0.0
    """Prompt tokens computed."""
    attention_pairs: float = 0.0
    """Sum over prompt tokens computed of the tokens before each: a chunk of n tokens after c makes n * (c + n / 2)."""
    prompts: float = 0.0
    """Prompts that are completed, and so get their first token."""


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


class StepModel:
    """Times of the steps of one engine: a model on a layout. Everything is per GPU, since its GPUs work in step."""

    def __init__(self, model: ModelShape, layout: Layout, parameters: StepParameters | None = None) -> None:
        """Precompute what doesn't depend on the step. `parameters` are the committed calibration's when left out."""
        f = parameters or calibration().parameters
        gpu = layout.instance.gpu
        tp = layout.tensor_parallel_size
        peak = layout.peak_arithmetic
        read, reached = (f.weight_read, f.fp8) if layout.quantised else (f.weight_read_bf16, f.bf16)
        self._model = model
        self._layout = layout
        self._reduce = f.all_reduce * (2 * model.layers + 1)
        self.weight_seconds = weight_bytes_per_gpu(model, layout) / (gpu.memory_bandwidth * read)
        self.linear_seconds_per_row = 2 * model.linear_parameters / tp / (peak * reached)
        self.head_seconds_per_row = 2 * model.embedding_parameters / tp / (gpu.bf16 * OUTPUT_HEAD)
        self.overlap = f.overlap
        self.kv_seconds_per_token = kv_bytes_per_token_per_gpu(model, layout) / (gpu.memory_bandwidth * f.kv_read)
        pair_flops = 4 * model.heads * model.head_dim * model.layers / tp
        self.seconds_per_pair = pair_flops / (gpu.bf16 * f.prefill_attention)
        size = model.hidden * model.layers / (LLAMA_3_70B.hidden * LLAMA_3_70B.layers)
        self.elementwise_seconds_per_row = f.elementwise_bytes * size / (gpu.memory_bandwidth * ELEMENTWISE)
        # Kernel launches grow with the layers; the fit's points all have 80.
        self.host_seconds = to_seconds(f.host_ms_of(layout.stack)) * model.layers / LLAMA_3_70B.layers
        self.host_seconds_per_sequence = f.host_us_of(layout.stack) * MICROSECOND
        self._growth = f.host_growth

    def parts(self, work: Work) -> StepTime:
        """The parts of a step."""
        rows = work.decodes + work.prefill
        head_rows = work.decodes + work.prompts
        by_arithmetic = rows * self.linear_seconds_per_row + head_rows * self.head_seconds_per_row
        p = self.overlap
        layout = self._layout
        reduce = 0.0
        if layout.tensor_parallel_size > 1:
            nvlink = layout.instance.gpu.nvlink_gb_per_second
            elements = rows * self._model.hidden
            reduce = self._reduce * all_reduce(elements, layout.tensor_parallel_size, layout.stack, nvlink)
        return StepTime(
            # A smooth maximum: the two overlap, but not perfectly where they are equal.
            matrix_products=(self.weight_seconds**p + by_arithmetic**p) ** (1 / p),
            kv_read=work.context_tokens * self.kv_seconds_per_token,
            prefill_attention=work.attention_pairs * self.seconds_per_pair,
            all_reduce=reduce,
            # Norms, activations, quantisation and rotary embedding are repeated on every GPU, not split.
            elementwise=rows * self.elementwise_seconds_per_row,
            host=self.host_seconds + self.host_seconds_per_sequence * host_sequences(work.decodes, self._growth),
        )

    def seconds(self, work: Work) -> Seconds:
        """Time of a step."""
        return self.parts(work).total


def host_sequences(decodes: float, growth: float) -> float:
    """The sequences that the host's time per sequence counts for; as many as decode at `HOST_SEQUENCES` of them."""
    return HOST_SEQUENCES * (decodes / HOST_SEQUENCES) ** growth if decodes else 0.0


def step_time(
    model: ModelShape, layout: Layout, *, decodes: float, prefill: float, context: float, prompt: float
) -> StepTime:
    """Time of a step with `decodes` sequences of `context` tokens and `prefill` tokens of prompts `prompt` long."""
    work = Work(
        decodes=decodes,
        context_tokens=decodes * context,
        prefill=prefill,
        attention_pairs=prefill * prompt / 2,
        prompts=prefill / prompt,
    )
    return StepModel(model, layout).parts(work)
