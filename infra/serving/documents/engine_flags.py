"""The command line of an engine: `vllm serve` of the version in versions.py.

Everything that matters is said, also where it is vLLM's default: defaults differ between GPUs and versions.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from srvmod.infra.serving.documents.metrics import ITL_TARGET_SECONDS, TTFT_TARGET_SECONDS

ITL_BUCKETS_SECONDS = (
    0.005, 0.01, 0.015, 0.02, 0.0225, 0.025, 0.0275, 0.03, 0.034, 0.038, 0.045, 0.05, 0.075, 0.1, 0.2, 0.5, 1, 5,
)  # fmt: skip
TTFT_BUCKETS_SECONDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.75, 1, 2.5, 5, 10, 20, 60,
)  # fmt: skip
REQUEST_BUCKETS_SECONDS = (0.01, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600)


@dataclass(frozen=True)
class Drafting:
    """Speculative decoding: vLLM's method, where the draft model lies, and tokens by batch size (first and last)."""

    method: str
    path: str
    batches: Sequence[tuple[int, int, int]]

    @property
    def config(self) -> str:
        """The value of --speculative-config. vLLM drafts nothing in batches whose entry says 0 tokens.

        Written so that the last entry ends the value: admission reads it there.
        """
        return json.dumps(
            {
                "method": self.method,
                "model": self.path,
                "num_speculative_tokens": max(tokens for _, _, tokens in self.batches),
                "num_speculative_tokens_per_batch_size": [list(batch) for batch in self.batches],
            },
            separators=(",", ":"),
        )


@dataclass(frozen=True)
class EngineFlags:
    """Numbers and choices of an engine. Tokens, sequences and rows are counts; the time-out is in seconds."""

    model_path: str
    served_name: str
    port: int
    tensor_parallel_size: int
    block_size: int
    kv_cache_dtype: str
    max_model_len: int
    max_num_seqs: int
    max_num_batched_tokens: int
    max_cudagraph_capture_size: int
    gpu_memory_utilization: float
    shutdown_timeout_seconds: int
    itl_target_seconds: float = ITL_TARGET_SECONDS
    ttft_target_seconds: float = TTFT_TARGET_SECONDS
    drafting: Drafting | None = None
    extra: Sequence[str] = ()


def histogram_buckets(itl_target_seconds: float, ttft_target_seconds: float) -> str:
    """Buckets with the edges that scaler and alerts judge at (30, 38 and 350 ms, and the stack's own targets), as
    vLLM's flag takes them.

    vLLM's own have none of the three: a quantile read from them can raise a false alert or miss a real one.
    """
    return json.dumps(
        {
            "inter_token_latency": sorted({*ITL_BUCKETS_SECONDS, itl_target_seconds}),
            "time_to_first_token": sorted({*TTFT_BUCKETS_SECONDS, ttft_target_seconds}),
            "request_latency": REQUEST_BUCKETS_SECONDS,
        },
        separators=(",", ":"),
    )


def serve_arguments(flags: EngineFlags) -> list[str]:
    """The words after the program's name, one flag with its value per word."""
    valued: dict[str, str | int | float] = {
        "host": "0.0.0.0",
        "port": flags.port,
        "served-model-name": flags.served_name,
        "tensor-parallel-size": flags.tensor_parallel_size,
        "distributed-executor-backend": "mp",
        "block-size": flags.block_size,
        "kv-cache-dtype": flags.kv_cache_dtype,
        "max-model-len": flags.max_model_len,
        "max-num-seqs": flags.max_num_seqs,
        "max-num-batched-tokens": flags.max_num_batched_tokens,
        # Above vLLM's default of 512 rows a decoding batch would leave the CUDA graph and run eagerly.
        "max-cudagraph-capture-size": flags.max_cudagraph_capture_size,
        "gpu-memory-utilization": flags.gpu_memory_utilization,
        "stream-interval": 1,
        # The default 0 aborts every stream on SIGTERM.
        "shutdown-timeout": flags.shutdown_timeout_seconds,
        "custom-histogram-buckets": histogram_buckets(flags.itl_target_seconds, flags.ttft_target_seconds),
    }
    switches = ("enable-chunked-prefill", "enable-prefix-caching", "async-scheduling", "disable-uvicorn-access-log")
    if flags.drafting is not None:
        valued["speculative-config"] = flags.drafting.config
    return [
        "serve",
        flags.model_path,
        *(f"--{flag}={value}" for flag, value in valued.items()),
        *(f"--{flag}" for flag in switches),
        *flags.extra,
    ]
