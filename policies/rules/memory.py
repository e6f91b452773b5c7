"""MC-KV-01: KV cache in blocks of 16 tokens, weights in FP8, and room for the declared contexts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from srvmod.capacity import CapacityError, Layout, kv_allotted_per_token_per_gpu, kv_room
from srvmod.contract import (
    CONTEXT_TOKENS,
    KV_BLOCK_TOKENS,
    LLAMA_3_2_1B,
    TENSOR_PARALLEL_SIZE,
    Clause,
    KvCacheDtype,
    ModelShape,
)
from srvmod.policies.config import Config
from srvmod.policies.facts import Engine, Known, Maybe, Place, Unknown, Value, World
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.subjects import sessions_per_engine, vllm_engines

BLOCK = Maker(Clause.MC_KV_01, "kv-block", "larger blocks leave more of the last one empty, smaller ones cost look-ups")
DTYPE = Maker(
    Clause.MC_KV_01, "kv-dtype", "the plan's contexts hold for a cache of one or two bytes that H100 computes with"
)
WEIGHTS = Maker(Clause.MC_KV_01, "weights", "weights in bf16 take twice the memory, which the KV cache then lacks")
ROOM = Maker(Clause.MC_KV_01, "kv-room", "contexts that don't fit are preempted and computed again: streams stall")

DTYPES = {
    "auto": KvCacheDtype.BF16,
    "fp8": KvCacheDtype.FP8,
    "fp8_e4m3": KvCacheDtype.FP8,
    "bfloat16": KvCacheDtype.BF16,
    "float16": KvCacheDtype.BF16,
}
"""KV cache types that are allowed, by the bytes they take."""
FP8_QUANTIZATIONS = {
    "fp8",
    "compressed-tensors",
    "modelopt",
    "fbgemm_fp8",
    "fp8_per_tensor",
    "fp8_per_block",
    "fp8_per_channel",
}
OTHER_FORMATS = re.compile(r"(awq|gptq|int4|int8|w4a16|w8a16|bnb|bitsandbytes|gguf|nf4|mxfp4|nvfp4)", re.IGNORECASE)
FP8 = re.compile(r"fp8|w8a8", re.IGNORECASE)
DEFAULT_UTILIZATION = 0.92
LARGEST_DRAFT = LLAMA_3_2_1B
"""What counts for everything that drafts: an EAGLE-3 head leaves more room, and a folder's name doesn't tell which."""
NO_DRAFTS = ("", "None", "null")
"""Values of --speculative-config that draft nothing."""


def kv_block(world: World, config: Config) -> Iterator[Finding]:
    """`--block-size` is 16 where it is given; vLLM's default on CUDA is 16."""
    del config
    wanted = KV_BLOCK_TOKENS.value
    fix = f"--block-size={wanted}"
    for engine in vllm_engines(world):
        size = engine.line.integer("block_size")
        if isinstance(size, Unknown):
            yield BLOCK.unknown("block_size", size, fix)
        elif size is not None and size.value != wanted:
            yield BLOCK.error(size.place, f"block_size is {size.value}", fix)


def kv_dtype(world: World, config: Config) -> Iterator[Finding]:
    """`--kv-cache-dtype` is FP8 or 16 bit."""
    del config
    for engine in vllm_engines(world):
        dtype = engine.line.string("kv_cache_dtype")
        if isinstance(dtype, Unknown):
            yield DTYPE.unknown("kv_cache_dtype", dtype, "--kv-cache-dtype=fp8")
        elif dtype is not None and dtype.value not in DTYPES:
            yield DTYPE.error(dtype.place, f"kv_cache_dtype is {dtype.value}", f"one of {', '.join(DTYPES)}")


def weights(world: World, config: Config) -> Iterator[Finding]:
    """Flags and checkpoint agree on FP8."""
    for engine in vllm_engines(world):
        quantization, model = engine.line.string("quantization"), engine.line.model
        chosen = quantization.value if isinstance(quantization, Known) else ""
        name = model.value if isinstance(model, Known) else ""
        if isinstance(quantization, Unknown):
            yield WEIGHTS.unknown("quantization", quantization, "leave it out for an FP8 checkpoint")
        elif isinstance(quantization, Known) and chosen not in FP8_QUANTIZATIONS | {""}:
            yield WEIGHTS.error(
                quantization.place, f"quantization is {chosen}", "an FP8 checkpoint, and no --quantization"
            )
        dtype = engine.line.string("dtype")
        if isinstance(dtype, Known) and dtype.value in {"float32", "float"}:
            yield WEIGHTS.error(dtype.place, f"dtype is {dtype.value}", "leave --dtype out")
        if isinstance(model, Unknown):
            yield WEIGHTS.unknown("the model", model, "write the model as a plain value")
        elif isinstance(model, Known):
            if OTHER_FORMATS.search(name) and not FP8.search(name):
                yield WEIGHTS.error(model.place, f"{name} isn't an FP8 checkpoint", "an FP8 checkpoint")
            elif config.shape(name) is not None and not FP8.search(name) and not chosen:
                what = f"{name} is a bf16 checkpoint and nothing quantises it"
                yield WEIGHTS.error(model.place, what, "an FP8 checkpoint, or --quantization=fp8")


def kv_room_rule(world: World, config: Config) -> Iterator[Finding]:
    """What is left for KV cache holds one context of the specification's length per session of the engine."""
    for engine in vllm_engines(world):
        yield from _room(engine, world, config)


def _room(engine: Engine, world: World, config: Config) -> Iterator[Finding]:
    line = engine.line
    if line.integer("tensor_parallel_size") is None or _wrong(line.integer("tensor_parallel_size")):
        return  # MC-HW-01 speaks of it; the memory of another layout says nothing about this one.
    utilization = line.number("gpu_memory_utilization")
    dtype = line.string("kv_cache_dtype")
    for name, fact in (("gpu_memory_utilization", utilization), ("kv_cache_dtype", dtype)):
        if isinstance(fact, Unknown):
            yield ROOM.unknown(name, fact)
            return
    share = float(utilization.value) if isinstance(utilization, Known) else DEFAULT_UTILIZATION
    if not 0 < share <= 1 or (isinstance(dtype, Known) and dtype.value not in DTYPES):
        return  # Found by other rules.
    shape = shape_of(line.model, config)
    if shape is None:
        named = line.model.value if isinstance(line.model, Known) else "the model"
        place = line.model.place if line.model is not None else line.place
        missing = Unknown(f"the shape of {named} isn't known", place)
        yield ROOM.unknown("whether the contexts fit", missing, "give its shape under `models` in the configuration")
        return
    sessions = sessions_per_engine(engine, world, config)
    if isinstance(sessions, Unknown):
        yield ROOM.unknown("whether the contexts fit", sessions, "give replicas, or a scaler's minimum")
        return
    length = line.integer("max_model_len")
    longest = length.value if isinstance(length, Known) and length.value > 0 else shape.context_tokens
    tokens = min(CONTEXT_TOKENS.value, longest)
    place = _place_of(
        utilization, line.given.get("kv_cache_memory_bytes"), line.given.get("num_gpu_blocks_override"), line.place
    )
    blocks = _blocks(engine, shape, share, DTYPES[dtype.value if isinstance(dtype, Known) else "auto"])
    per_context = -(-tokens // KV_BLOCK_TOKENS.value)
    needed = max(sessions.value * per_context, -(-longest // KV_BLOCK_TOKENS.value))
    if isinstance(blocks, Unknown):
        yield ROOM.unknown("the size of the KV cache", blocks)
    elif blocks < needed:
        held = blocks // per_context
        what = f"{held} contexts of {tokens:,} tokens fit, {sessions.value} are declared ({sessions.text})"
        if sessions.value * per_context <= blocks:
            what = f"one context of {longest:,} tokens doesn't fit"
        yield ROOM.error(place, what, "more memory for the cache, an FP8 cache, more engines, or shorter contexts")


def _wrong(size: Maybe[int]) -> bool:
    return isinstance(size, Known) and size.value != TENSOR_PARALLEL_SIZE.value


def shape_of(model: Maybe[str], config: Config) -> ModelShape | None:
    """Shape of the model that the line names; a folder holds the configuration's model."""
    if not isinstance(model, Known):
        return config.shape(config.model)
    name = model.value
    if name.startswith(("/", ".", "s3://", "gs://", "oci://")):
        return config.shape(config.model)
    found = config.shape(name)
    if found is not None:
        return found
    base = config.model.rpartition("/")[2].lower().removeprefix("meta-")
    return config.shape(config.model) if base in name.lower() else None


def _blocks(engine: Engine, shape: ModelShape, share: float, dtype: KvCacheDtype) -> int | Unknown:
    budget = engine.line.integer("max_num_batched_tokens")
    quantised = (
        not (isinstance(engine.line.model, Known) and shape.id == engine.line.model.value)
        or "quantization" in engine.line.given
    )
    layout = Layout(
        kv_cache_dtype=dtype,
        gpu_memory_utilization=share,
        weight_bytes_per_element=1 if quantised else 2,
        max_num_batched_tokens=budget.value if isinstance(budget, Known) and 0 < budget.value <= 1_000_000 else 8_192,
        draft=LARGEST_DRAFT if _drafts(engine) else None,
    )
    override = engine.line.integer("num_gpu_blocks_override")
    if isinstance(override, Unknown):
        return override
    if override is not None:
        return override.value
    given = engine.line.option("kv_cache_memory_bytes")
    if isinstance(given, Unknown):
        return given
    if isinstance(given, Known) and isinstance(given.value, int | float) and given.value:
        per_block = kv_allotted_per_token_per_gpu(shape, layout) * KV_BLOCK_TOKENS.value
        return int(given.value // per_block)
    try:
        return kv_room(shape, layout).blocks
    except CapacityError:
        return 0


def _drafts(engine: Engine) -> bool:
    """Whether a model drafts on the same GPUs; one that can't be read counts."""
    given = engine.line.given.get("speculative_config")
    return given is not None and not (isinstance(given, Known) and str(given.value) in NO_DRAFTS)


def _place_of(utilization: Maybe[int | float], given: Maybe[Value], override: Maybe[Value], otherwise: Place) -> Place:
    found = override or given or utilization
    return otherwise if found is None else found.place


RULES = (kv_block, kv_dtype, weights, kv_room_rule)
