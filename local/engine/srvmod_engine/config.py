"""The engine's settings after vLLM's own cross-field rules, from command line, model folder and environment."""

import argparse
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srvmod.capacity import Layout
from srvmod.contract import ModelShape

from srvmod_engine import buckets, hardware
from srvmod_engine.bounds import Bounds, read_bounds
from srvmod_engine.errors import ConfigError
from srvmod_engine.model import LoadedModel, load_model
from srvmod_engine.options import SimOptions
from srvmod_engine.weight_format import WeightFormat, weight_format


@dataclass(frozen=True)
class EngineConfig:
    """Everything that scheduler, metrics and HTTP server read. Times in seconds, lengths in tokens."""

    model_path: str
    served_names: tuple[str, ...]
    shape: ModelShape
    layout: Layout
    stand_in: bool
    tensor_parallel: int
    max_model_len: int
    max_num_seqs: int
    max_batched_tokens: int
    block_size: int
    num_blocks: int
    kv_cache_dtype: str
    weights: WeightFormat
    gpu_memory_utilization: float
    prefix_caching: bool
    chunked_prefill: bool
    long_prefill_tokens: int
    reserve_whole_prompt: bool
    watermark: float
    stream_interval: int
    host: str
    port: int
    sim: SimOptions
    bounds: Bounds
    api_keys: tuple[str, ...] = ()
    shutdown_timeout: int = 0
    keep_alive_seconds: float = 5.0
    max_queued_requests: int | None = None
    max_queued_tokens: int | None = None
    log_stats: bool = True
    access_log: bool = True
    quiet_paths: frozenset[str] = frozenset()
    prompt_details: bool = False
    force_usage: bool = False
    request_id_headers: bool = False
    response_role: str = "assistant"
    fingerprint: str | None = None
    custom_buckets: dict[str, tuple[float, ...]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


class _Problems:
    """Collects every complaint, so that one start names them all."""

    def __init__(self) -> None:
        self.found: list[str] = []

    def unless(self, fine: bool, message: str) -> None:
        if not fine:
            self.found.append(message)

    def whole(self, args: argparse.Namespace, name: str, *, minimum: int = 1) -> int | None:
        """An optional whole number that the option table holds as text."""
        value = getattr(args, name)
        if value is None:
            return None
        option = "--" + name.replace("_", "-")
        try:
            number = int(value)
        except ValueError:
            self.found.append(f"{option} {value}: must be a whole number")
            return None
        self.unless(number >= minimum, f"{option} {number}: must be at least {minimum}")
        return number


def _unsupported(args: argparse.Namespace) -> list[str]:
    """Options that vLLM takes and that would change what a client sees, but that the simulation can't do."""
    asked: dict[str, bool] = {
        "--config": args.config is not None,
        "--grpc": bool(args.grpc),
        "--uds": args.uds is not None,
        "--ssl-keyfile": args.ssl_keyfile is not None,
        "--ssl-certfile": args.ssl_certfile is not None,
        "--root-path": args.root_path is not None,
        "--middleware": bool(args.middleware),
        "--enable-lora": bool(args.enable_lora),
        "--headless": bool(args.headless),
        "--speculative-config": args.speculative_config is not None,
        "--pipeline-parallel-size above 1": args.pipeline_parallel_size > 1,
        "--data-parallel-size above 1": args.data_parallel_size > 1,
        "--enable-mfu-metrics": bool(args.enable_mfu_metrics),
        "--scheduling-policy priority": args.scheduling_policy == "priority",
        "--prefill-schedule-interval above 1": args.prefill_schedule_interval > 1,
        "--long-prefill-token-threshold-adaptive": bool(args.long_prefill_token_threshold_adaptive),
        "--api-server-count above 1": (args.api_server_count or 1) > 1,
    }
    return [f"{name}: vLLM knows it, the simulation doesn't do it" for name, given in asked.items() if given]


def _max_model_len(asked: int | None, shape: ModelShape, env: Mapping[str, str], problems: _Problems) -> int:
    if asked is None or asked == -1:
        return shape.context_tokens
    allowed = env.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") == "1"
    problems.unless(
        asked <= shape.context_tokens or allowed,
        f"--max-model-len {asked}: greater than the derived max_model_len ({shape.context_tokens}) of {shape.id}; "
        "VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 overrides",
    )
    problems.unless(asked >= 1, f"--max-model-len {asked}: must be at least 1")
    return asked


def _api_keys(args: argparse.Namespace, env: Mapping[str, str]) -> tuple[str, ...]:
    keys = args.api_key or ([env["VLLM_API_KEY"]] if env.get("VLLM_API_KEY") else [])
    return tuple(key for key in keys if key)


def _fingerprint(args: argparse.Namespace, tensor_parallel: int, version: str) -> str | None:
    if args.fingerprint_mode == "none":
        return None
    if args.fingerprint_mode == "custom":
        return args.fingerprint_value
    # Everything but the key: a secret's hash has no place in an answer.
    settings = sorted((name, str(value)) for name, value in vars(args).items() if name != "api_key")
    digest = hashlib.sha256(repr(settings).encode()).hexdigest()[:8]
    parallel = f"-tp{tensor_parallel}" if args.fingerprint_mode == "full" and tensor_parallel > 1 else ""
    return f"simulated-vllm-{version}{parallel}-{digest}"


def _blocks(args: argparse.Namespace, problems: _Problems, shape: ModelShape, layout: Layout) -> int:
    override = problems.whole(args, "num_gpu_blocks_override")
    if override is not None:
        return override
    return hardware.kv_blocks(shape, layout, memory_bytes=problems.whole(args, "kv_cache_memory_bytes"))


def build_config(args: argparse.Namespace, env: Mapping[str, str], sim: SimOptions) -> EngineConfig:
    """Apply vLLM's rules. Raises ConfigError with all complaints at once, WeightsError for the model folder."""
    from srvmod_engine import VLLM_VERSION

    path = args.model_tag or args.model
    loaded = load_model(Path(path), args.load_format)
    shape = loaded.shape
    problems = _Problems()
    problems.found += _unsupported(args)
    tensor = args.tensor_parallel_size
    problems.unless(
        tensor >= 1 and shape.heads % max(tensor, 1) == 0,
        f"--tensor-parallel-size {tensor}: the {shape.heads} attention heads must be divisible by it",
    )
    max_len = _max_model_len(args.max_model_len, shape, env, problems)
    seqs = args.max_num_seqs if args.max_num_seqs is not None else 1024
    batched = args.max_num_batched_tokens if args.max_num_batched_tokens is not None else 8192
    problems.unless(seqs >= 1, f"--max-num-seqs {seqs}: must be at least 1")
    problems.unless(batched >= seqs, f"--max-num-batched-tokens {batched}: must be at least --max-num-seqs ({seqs})")
    chunked = args.enable_chunked_prefill is not False
    problems.unless(
        chunked or batched >= max_len,
        f"--max-num-batched-tokens {batched}: without chunked prefill it must be at least {max_len}",
    )
    block = args.block_size if args.block_size is not None else 16
    problems.unless(block >= 1 and block % 16 == 0, f"--block-size {block}: CUDA attention takes multiples of 16")
    problems.unless(
        0 < args.gpu_memory_utilization <= 1,
        f"--gpu-memory-utilization {args.gpu_memory_utilization}: must be above 0 and at most 1",
    )
    problems.unless(args.stream_interval >= 1, f"--stream-interval {args.stream_interval}: must be at least 1")
    problems.unless(0 <= args.watermark < 1, f"--watermark {args.watermark}: must be at least 0 and below 1")
    problems.unless(
        args.long_prefill_token_threshold >= 0,
        f"--long-prefill-token-threshold {args.long_prefill_token_threshold}: must not be negative",
    )
    problems.unless(args.shutdown_timeout >= 0, f"--shutdown-timeout {args.shutdown_timeout}: must not be negative")
    problems.unless(
        args.kv_cache_dtype in hardware.known_kv_dtypes(),
        f"--kv-cache-dtype {args.kv_cache_dtype}: the simulation sizes {', '.join(hardware.known_kv_dtypes())}",
    )
    active = problems.whole(args, "max_num_active_seqs")
    queued = problems.whole(args, "max_num_queued_reqs")
    queued_tokens = problems.whole(args, "max_num_queued_tokens")
    try:
        custom = buckets.parse_custom(args.custom_histogram_buckets)
    except ConfigError as error:
        custom = {}
        problems.found.append(str(error))
    weights = WeightFormat(None, 2)
    try:
        weights = weight_format(loaded.config, quantization=args.quantization, dtype=args.dtype)
    except ConfigError as error:
        problems.found.append(str(error))
    if problems.found:
        raise ConfigError("; ".join(problems.found))
    layout = hardware.layout_for(
        instance=sim.instance,
        tensor_parallel=tensor,
        kv_cache_dtype=args.kv_cache_dtype,
        block_size=block,
        max_num_seqs=seqs,
        max_batched_tokens=batched,
        gpu_memory_utilization=args.gpu_memory_utilization,
        weight_bytes_per_element=weights.bytes_per_element,
    )
    blocks = _blocks(args, problems, shape, layout)
    problems.unless(
        blocks * block >= max_len,
        f"--max-model-len {max_len}: one request of that length needs {-(-max_len // block)} KV blocks, "
        f"{blocks} fit into the GPUs' memory; lower it, or raise --gpu-memory-utilization",
    )
    if problems.found:
        raise ConfigError("; ".join(problems.found))
    return EngineConfig(
        model_path=str(path),
        served_names=tuple(args.served_model_name or [path]),
        shape=shape,
        layout=layout,
        stand_in=loaded.stand_in,
        tensor_parallel=tensor,
        max_model_len=max_len,
        max_num_seqs=min(seqs, active) if active is not None else seqs,
        max_batched_tokens=batched,
        block_size=block,
        num_blocks=blocks,
        kv_cache_dtype=args.kv_cache_dtype,
        weights=weights,
        gpu_memory_utilization=args.gpu_memory_utilization,
        prefix_caching=args.enable_prefix_caching is not False,
        chunked_prefill=chunked,
        long_prefill_tokens=args.long_prefill_token_threshold,
        reserve_whole_prompt=args.scheduler_reserve_full_isl is not False,
        watermark=args.watermark,
        stream_interval=args.stream_interval,
        host=args.host or "0.0.0.0",
        port=args.port,
        sim=sim,
        bounds=read_bounds(env),
        api_keys=_api_keys(args, env),
        shutdown_timeout=args.shutdown_timeout,
        keep_alive_seconds=float(env.get("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "5")),
        max_queued_requests=queued,
        max_queued_tokens=queued_tokens,
        log_stats=not args.disable_log_stats,
        access_log=not args.disable_uvicorn_access_log,
        quiet_paths=frozenset(filter(None, (args.disable_access_log_for_endpoints or "").split(","))),
        prompt_details=bool(args.enable_prompt_tokens_details),
        force_usage=bool(args.enable_force_include_usage),
        request_id_headers=bool(args.enable_request_id_headers),
        response_role=args.response_role,
        fingerprint=_fingerprint(args, tensor, VLLM_VERSION),
        custom_buckets=custom,
        warnings=_warnings(args, loaded),
    )


def _warnings(args: argparse.Namespace, loaded: LoadedModel) -> tuple[str, ...]:
    out: list[str] = []
    if args.kv_cache_dtype.startswith("fp8") and args.load_format != "dummy" and not loaded.has_kv_scales:
        out.append(
            "Using KV cache scaling factor 1.0 for fp8_e4m3: the checkpoint has no k_scale/v_scale tensors; "
            "quality may suffer"
        )
    if args.enable_chunked_prefill is False:
        out.append("chunked prefill is off: long prompts stall every stream of the batch")
    return tuple(out)


def summary(config: EngineConfig) -> dict[str, Any]:
    """What the start-up log line says about the configuration."""
    return {
        "model": config.served_names[0],
        "stands_for": config.shape.id if config.stand_in else None,
        "tensor_parallel": config.tensor_parallel,
        "max_num_seqs": config.max_num_seqs,
        "max_num_batched_tokens": config.max_batched_tokens,
        "block_size": config.block_size,
        "num_gpu_blocks": config.num_blocks,
        "kv_cache_dtype": config.kv_cache_dtype,
        "quantization": config.weights.method,
        "weight_bytes_per_element": config.weights.bytes_per_element,
        "instance": config.sim.instance,
        "step_model": config.sim.step_model,
        "time_scale": config.sim.time_scale,
    }
