"""MC-HW-01: one engine is TP 4 on four whole GPUs of one p5.48xlarge, in one pod."""

from __future__ import annotations

from collections.abc import Iterator

from srvmod.contract import TENSOR_PARALLEL_SIZE, Clause
from srvmod.policies.config import Config
from srvmod.policies.facts import NVIDIA_GPU, Engine, Known, Place, Requirement, Unknown, World
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.subjects import pools_of, vllm_engines

TP = TENSOR_PARALLEL_SIZE.value
TENSOR_PARALLEL = Maker(
    Clause.MC_HW_01,
    "tensor-parallel",
    "four GPUs of one NUMA node hold the model; other sizes split an island or waste it",
)
GPUS = Maker(
    Clause.MC_HW_01, "gpus", "a node has two groups of four GPUs (islands); an engine of another size breaks them"
)
ONE_ENGINE = Maker(Clause.MC_HW_01, "one-engine", "an engine is one tensor-parallel group and nothing beside it")
INSTANCE = Maker(Clause.MC_HW_01, "instance-type", "only p5.48xlarge has eight H100 on NVLink with two islands of four")
INSTANCE_KEYS = {"node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type"}
PRODUCT_KEYS = {
    "nvidia.com/gpu.product": "H100",
    "karpenter.k8s.aws/instance-gpu-name": "h100",
    "cloud.google.com/gke-accelerator": "h100",
    "gpu.nvidia.com/model": "H100",
}
"""Node labels that name the GPU, and what must be in their value."""


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
    """Requests and limits of the engine's container are four whole NVIDIA GPUs, and nobody beside it has any."""
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
    if not engine.gpus:
        yield GPUS.error(engine.place, f"asks for no {NVIDIA_GPU}", fix)
    for amount in whole:
        for name, value in (("requests", amount.requested), ("limits", amount.limited)):
            if isinstance(value, Unknown):
                yield GPUS.unknown(f"{name}: {NVIDIA_GPU}", value, fix)
            elif value is not None and value.value != TP:
                yield GPUS.error(value.place, f"{name} {value.value} {NVIDIA_GPU}", fix)
        if amount.limited is None:
            # The API server refuses an extended resource without a limit.
            yield GPUS.error(_place(amount.requested, None, engine.place), f"has no limit on {NVIDIA_GPU}", fix)
    for amount in engine.workload.pod.gpus:
        if amount not in engine.gpus and amount.count is not None:
            beside = "a container beside the engine asks for GPUs of its own"
            yield GPUS.error(
                _place(amount.limited, amount.requested, engine.place), beside, "no GPUs beside the engine"
            )


def one_engine(world: World, config: Config) -> Iterator[Finding]:
    """One group per pod: no pipeline stages, no data-parallel copies, no second engine in the pod."""
    del config
    seen: dict[Place, Engine] = {}
    for engine in vllm_engines(world):
        for name in ("pipeline_parallel_size", "data_parallel_size", "prefill_context_parallel_size"):
            size = engine.line.integer(name)
            flag = f"--{name.replace('_', '-')}"
            if isinstance(size, Unknown):
                yield ONE_ENGINE.unknown(name, size, f"{flag}=1, or leave it out")
            elif size is not None and size.value != 1:
                yield ONE_ENGINE.error(size.place, f"{name} is {size.value}", f"{flag}=1, or leave it out")
        pod = engine.workload.pod.place
        other = seen.setdefault(pod, engine)
        if other is not engine and other.container != engine.container:
            what = f"containers {other.container} and {engine.container} are two engines in one pod"
            yield ONE_ENGINE.error(engine.place, what, "one engine per pod")


def instance_type(world: World, config: Config) -> Iterator[Finding]:
    """The engine's node selection and its pool name the instance type with the right GPUs."""
    wanted = config.instance_type
    fix = f"node.kubernetes.io/instance-type: {wanted}"
    done: set[Place] = set()
    for engine in vllm_engines(world):
        for one in (*engine.workload.pod.requirements, *engine.workload.pod.alternatives):
            yield from _instance(one, wanted, fix)
        for pool in pools_of(engine.workload, world):
            if pool.place in done:
                continue
            done.add(pool.place)
            found = [one for one in pool.requirements if one.key in INSTANCE_KEYS and one.operator == "In"]
            for one in pool.requirements:
                yield from _instance(one, wanted, fix)
            if not found and pool.labels.get("node.kubernetes.io/instance-type") != wanted:
                yield INSTANCE.error(
                    pool.place, f"pool {pool.name} doesn't say its instance type", f"requirement {fix}"
                )


def _instance(one: Requirement, wanted: str, fix: str) -> Iterator[Finding]:
    if one.operator != "In":
        return
    if one.key in INSTANCE_KEYS:
        wrong = [value for value in one.values if value != wanted]
        if wrong or not one.values:
            yield INSTANCE.error(one.place, f"instance type {', '.join(wrong) or 'is empty'}", fix)
    elif one.key in PRODUCT_KEYS:
        wrong = [value for value in one.values if PRODUCT_KEYS[one.key].lower() not in value.lower()]
        if wrong:
            yield INSTANCE.error(one.place, f"{one.key} is {', '.join(wrong)}", fix)


def _place(first: Known[int] | Unknown | None, second: Known[int] | Unknown | None, otherwise: Place) -> Place:
    found = first or second
    return otherwise if found is None else found.place


RULES = (tensor_parallel, gpus, one_engine, instance_type)
