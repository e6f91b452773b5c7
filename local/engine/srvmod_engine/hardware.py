"""The pretended hardware: KV blocks and step times, from the project's capacity model.

The one place that knows the rooms `capacity` and `contract`; the image carries copies of both beside this package.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from srvmod import capacity as capacity_room
from srvmod import contract
from srvmod.capacity import CapacityError, Layout, calibration, kv_bytes_per_token_per_gpu, kv_room
from srvmod.contract import InstanceType, KvCacheDtype, ModelShape

from srvmod_engine.errors import ConfigError
from srvmod_engine.front_end import Wait
from srvmod_engine.step_model import StepBatch, StepModel

if TYPE_CHECKING:
    from srvmod_engine.config import EngineConfig

_KV_DTYPES: Final[Mapping[str, KvCacheDtype]] = {
    "auto": KvCacheDtype.BF16,
    "bfloat16": KvCacheDtype.BF16,
    "float16": KvCacheDtype.BF16,
    "fp8": KvCacheDtype.FP8,
    "fp8_e4m3": KvCacheDtype.FP8,
    "fp8_e5m2": KvCacheDtype.FP8,
}


def known_kv_dtypes() -> tuple[str, ...]:
    """The values of --kv-cache-dtype that the simulation can size."""
    return tuple(_KV_DTYPES)


@cache
def instances() -> Mapping[str, InstanceType]:
    """Machines that can be pretended: every instance type that the contract describes, by name."""
    found = (value for value in vars(contract).values() if isinstance(value, InstanceType))
    return {instance.name: instance for instance in found}


def layout_for(
    *,
    instance: str,
    tensor_parallel: int,
    kv_cache_dtype: str,
    block_size: int,
    max_num_seqs: int,
    max_batched_tokens: int,
    gpu_memory_utilization: float,
    weight_bytes_per_element: float,
) -> Layout:
    """An engine on its hardware, in the capacity model's terms.

    Raises ConfigError for a machine or a layout that the model doesn't know.
    """
    machine = instances().get(instance)
    if machine is None:
        raise ConfigError(f"SRVMOD_SIM_INSTANCE={instance!r}: unknown; known are {', '.join(sorted(instances()))}")
    try:
        base = Layout(instance=machine, engines_per_node=1, tensor_parallel_size=tensor_parallel)
        return replace(
            base,
            kv_cache_dtype=_KV_DTYPES[kv_cache_dtype],
            block_tokens=block_size,
            max_num_seqs=max_num_seqs,
            max_num_batched_tokens=max_batched_tokens,
            gpu_memory_utilization=gpu_memory_utilization,
            weight_bytes_per_element=weight_bytes_per_element,
        )
    except CapacityError as error:
        raise ConfigError(str(error)) from None


def kv_blocks(model: ModelShape, layout: Layout, *, memory_bytes: int | None) -> int:
    """Blocks that fit into the GPUs' memory, or into `memory_bytes` of each (--kv-cache-memory-bytes).

    Raises ConfigError when not even one does.
    """
    if memory_bytes is not None:
        return int(memory_bytes // (kv_bytes_per_token_per_gpu(model, layout) * layout.block_tokens))
    try:
        return kv_room(model, layout).blocks
    except CapacityError as error:
        raise ConfigError(str(error)) from None


def first_token_wait(config: "EngineConfig") -> Wait | None:
    """The calibrated wait of the pretended server, times SRVMOD_SIM_FIRST_TOKEN_WAIT; None for none."""
    times = config.sim.first_token_wait
    waiting, stack = calibration().waiting, config.layout.stack
    return Wait(times * waiting.steps_of(stack), waiting.spread_of(stack)) if times else None


class CapacityStepModel:
    """Step times as the planner has them."""

    def __init__(self, model: ModelShape, layout: Layout) -> None:
        self._model = capacity_room.StepModel(model, layout)

    def seconds(self, batch: StepBatch) -> float:
        """See StepModel."""
        work = capacity_room.Work(
            decodes=batch.decode_seqs,
            context_tokens=batch.decode_context,
            prefill=batch.prefill_tokens,
            attention_pairs=batch.prefill_context,
            # Every chunk gets a row of the output head, the unfinished ones in vain: so does vLLM.
            prompts=batch.prefill_seqs,
        )
        return self._model.seconds(work)


def capacity(config: "EngineConfig") -> StepModel:
    """The default step model."""
    return CapacityStepModel(config.shape, config.layout)
