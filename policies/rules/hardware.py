"""MC-HW-01: one engine is TP 4 on four whole GPUs of one p5.48xlarge, in one pod."""

from __future__ import annotations

from collections.abc import Iterator

from srvmod.contract import TENSOR_PARALLEL_SIZE, Clause
from srvmod.policies.config import Config
from srvmod.policies.facts import NVIDIA_GPU, Engine, Known, Place, Unknown, World
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.subjects import vllm_engines

TP = TENSOR_PARALLEL_SIZE.value
TENSOR_PARALLEL = Maker(
    Clause.MC_HW_01, "tensor-parallel", "four GPUs of one NUMA node hold the model; other sizes split or waste an island"
)
GPUS = Maker(Clause.MC_HW_01, "gpus", "an engine with another number of GPUs breaks the two islands of its node")
ONE_ENGINE = Maker(Clause.MC_HW_01, "one-engine-per-pod", "two engines in a pod share its four GPUs")


def tensor_parallel(world: World, config: Config) -> Iterator[Finding]:
    """`--tensor-parallel-size` is 4; vLLM's default is 1."""
    del config
    fix = f"--tensor-parallel-size={TP}"
    for engine in vllm_engines(world):
        size = engine.line.integer("tensor_parallel_size")
        if isinstance(size, Unknown):
            yield TENSOR_PARALLEL.unknown("tensor_parallel_size", size, fix)
        elif size is None:
            yield TENSOR_PARALLEL.error(engine.line.place, "tensor_parallel_size isn't given, so it is 1", fix)
        elif size.value != TP:
            yield TENSOR_PARALLEL.error(size.place, f"tensor_parallel_size is {size.value}", fix)


def gpus(world: World, config: Config) -> Iterator[Finding]:
    """Requests and limits of the engine's container are four whole NVIDIA GPUs."""
    del config
    for engine in vllm_engines(world):
        yield from _gpus_of(engine)


def _gpus_of(engine: Engine) -> Iterator[Finding]:
    fix = f"resources.requests and limits: {NVIDIA_GPU}: {TP}"
    whole = [amount for amount in engine.gpus if amount.resource == NVIDIA_GPU]
    for amount in engine.gpus:
        if amount.resource != NVIDIA_GPU:
            place = _place(amount.limited, amount.requested, engine.place)
            yield GPUS.error(place, f"asks for {amount.resource}, a part of a GPU", fix)
    if not whole and not engine.gpus:
        yield GPUS.error(engine.place, f"asks for no {NVIDIA_GPU}", fix)
        return
    for amount in whole:
        for name, value in (("requests", amount.requested), ("limits", amount.limited)):
            if isinstance(value, Unknown):
                yield GPUS.unknown(f"{name}: {NVIDIA_GPU}", value, fix)
            elif value is not None and value.value != TP:
                yield GPUS.error(value.place, f"{name} {value.value} {NVIDIA_GPU}", fix)
        if amount.limited is None:
            # The API server refuses an extended resource without a limit.
            yield GPUS.error(_place(amount.requested, None, engine.place), f"has no limit on {NVIDIA_GPU}", fix)


def _place(first: Known[int] | Unknown | None, second: Known[int] | Unknown | None, otherwise: Place) -> Place:
    found = first or second
    return otherwise if found is None else found.place


RULES = (tensor_parallel, gpus)
