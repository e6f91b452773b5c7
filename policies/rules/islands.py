"""INV-SRVMOD-03: a tensor-parallel group stays on NVLink, inside one node and one NUMA node."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from srvmod.contract import P5_48XLARGE, TENSOR_PARALLEL_SIZE, Clause
from srvmod.policies.config import Config
from srvmod.policies.facts import NVIDIA_GPU, Engine, Known, Maybe, Place, Pool, Unknown, Value, Workload, World
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.subjects import lands_on, pools_of, vllm_engines

TP = TENSOR_PARALLEL_SIZE.value
CLAUSE = Clause.INV_SRVMOD_03
ONE_NODE = Maker(CLAUSE, "one-node", "a group over several nodes talks over the network instead of NVLink")
NVLINK = Maker(CLAUSE, "nvlink", "160 all-reduces per token go over PCIe or host memory instead of NVLink")
NARROWED = Maker(CLAUSE, "nvlink-narrowed", "all-reduce gets slower than what the capacity model was fitted to")
DEVICES = Maker(
    CLAUSE, "visible-devices", "a choice of devices can cross the two islands, or take GPUs that aren't the pod's"
)
SHARING = Maker(CLAUSE, "gpu-sharing", "parts of GPUs have no NVLink peers, and the device plugin stops aligning them")
TOPOLOGY = Maker(CLAUSE, "topology-manager", "without single-numa-node nothing keeps four GPUs on one island")
POOL = Maker(CLAUSE, "pool-pods", "GPU pods of other sizes fragment the islands: then no island of four is free")

Test = Callable[[str], bool]


def _number(value: str) -> int:
    text = value.strip() or "0"
    return int(text) if re.fullmatch(r"[+-]?\d{1,9}", text) else 1


def _on(value: str) -> bool:
    return _number(value) != 0


def _off(value: str) -> bool:
    return bool(value.strip()) and _number(value) == 0


def _local(value: str) -> bool:
    return value.strip().upper() in {"LOC", "0"}


def _set(value: str) -> bool:
    return bool(value)


OFF_WHEN: dict[str, Test] = {
    "NCCL_P2P_DISABLE": _on,
    "NCCL_P2P_LEVEL": _local,
    "NCCL_NVLS_ENABLE": _off,
    "CUDA_DISABLE_P2P": _on,
}
"""Variables that take NVLink away, and when. A value that isn't a number counts as 1, to be on the safe side."""
NARROWER: dict[str, Test] = {
    "NCCL_ALGO": _set,
    "NCCL_PROTO": _set,
    "NCCL_SHM_DISABLE": _on,
    "NCCL_MAX_NCHANNELS": _set,
    "VLLM_ALLREDUCE_USE_SYMM_MEM": _off,
    "VLLM_ALLREDUCE_USE_FLASHINFER": _off,
    "VLLM_DISABLE_PYNCCL": _on,
    "VLLM_BATCH_INVARIANT": _on,
}
ISLANDS = tuple(frozenset(island.gpus) for island in P5_48XLARGE.islands)


def one_node(world: World, config: Config) -> Iterator[Finding]:
    """No group of pods, no --nnodes, no Ray that may place workers elsewhere."""
    del config
    groups: set[Place] = set()
    for engine in vllm_engines(world):
        group = engine.workload.group
        if group is not None and group.size.place not in groups:
            groups.add(group.size.place)
            if isinstance(group.size, Unknown):
                yield ONE_NODE.unknown(group.what, group.size, "a group of 1")
            elif group.size.value > 1:
                what = f"{group.what}: {group.size.value} pods are one engine"
                yield ONE_NODE.error(group.size.place, what, f"one pod with {TP} GPUs and tensor_parallel_size {TP}")
        yield from _flags_for_nodes(engine)


def _flags_for_nodes(engine: Engine) -> Iterator[Finding]:
    line = engine.line
    nodes = line.integer("nnodes")
    if isinstance(nodes, Unknown):
        yield ONE_NODE.unknown("nnodes", nodes, "leave --nnodes out")
    elif nodes is not None and nodes.value > 1:
        yield ONE_NODE.error(nodes.place, f"nnodes is {nodes.value}", "leave --nnodes out")
    backend = line.string("distributed_executor_backend")
    if isinstance(backend, Unknown):
        yield ONE_NODE.unknown("distributed_executor_backend", backend, "--distributed-executor-backend=mp")
    elif backend is not None and backend.value not in {"mp", ""}:
        what = f"distributed_executor_backend is {backend.value}, which may place workers on other nodes"
        yield ONE_NODE.error(backend.place, what, "--distributed-executor-backend=mp")
    for name in ("data_parallel_address", "master_addr"):
        address = line.given.get(name)
        if isinstance(address, Known) and address.value not in {"127.0.0.1", "localhost", ""}:
            yield ONE_NODE.error(address.place, f"{name} is {address.value}", f"leave --{name.replace('_', '-')} out")


def nvlink(world: World, config: Config) -> Iterator[Finding]:
    """Variables that disable P2P, or narrow what NCCL may use."""
    del config
    for engine in vllm_engines(world):
        if engine.open_env is not None:
            yield NVLINK.unknown("the engine's environment", engine.open_env, "add that ConfigMap to the input")
        for name, off in OFF_WHEN.items():
            value = engine.env.get(name)
            if isinstance(value, Unknown):
                yield NVLINK.unknown(name, value, f"leave {name} out")
            elif value is not None and off(value.value):
                yield NVLINK.error(value.place, f"{name}={value.value}", f"leave {name} out")


def nvlink_narrowed(world: World, config: Config) -> Iterator[Finding]:
    """Choices that leave NVLink but make less of it."""
    del config
    for engine in vllm_engines(world):
        for name, narrows in NARROWER.items():
            value = engine.env.get(name)
            if isinstance(value, Known) and narrows(value.value):
                yield NARROWED.warning(value.place, f"{name}={value.value}", f"leave {name} out")
        custom = engine.line.switch("disable_custom_all_reduce")
        if isinstance(custom, Known) and custom.value:
            yield NARROWED.warning(custom.place, "custom all-reduce is off", "leave --disable-custom-all-reduce out")


def visible_devices(world: World, config: Config) -> Iterator[Finding]:
    """CUDA_VISIBLE_DEVICES and the like name the pod's own four GPUs, or nothing."""
    del config
    for engine in vllm_engines(world):
        names = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
        chosen: list[tuple[str, Maybe[Value]]] = [(name, engine.env.get(name)) for name in names]
        chosen.append(("--device-ids", engine.line.given.get("device_ids")))
        for name, value in chosen:
            fix = f"leave {name} out: the device plugin chooses"
            if isinstance(value, Unknown):
                yield DEVICES.unknown(name, value, fix)
            elif value is not None and (problem := _devices(name, str(value.value))):
                yield DEVICES.error(value.place, f"{name}={value.value}: {problem}", fix)


def _devices(name: str, value: str) -> str:
    parts = [part.strip() for part in value.split(",") if part.strip()]
    if name == "NVIDIA_VISIBLE_DEVICES" and value in {"all"}:
        return "gives the container all GPUs of the node, also those of the other engine"
    if not parts or value in {"none", "void"}:
        return "leaves no GPU" if name != "NVIDIA_VISIBLE_DEVICES" or value else ""
    if not all(part.isdigit() and len(part) < 4 for part in parts):
        return "names devices that can't be placed on an island"
    indexes = [int(part) for part in parts]
    if frozenset(indexes) in ISLANDS and len(indexes) == TP:
        return ""
    if len(set(indexes)) < TP:
        return f"leaves {len(set(indexes))} of {TP} GPUs"
    return "isn't one island"


def gpu_sharing(world: World, config: Config) -> Iterator[Finding]:
    """No MIG and no time-slicing where engines run."""
    del config
    if not list(vllm_engines(world)):
        return
    for setting in world.devices:
        value = setting.value
        if isinstance(value, Unknown):
            yield SHARING.unknown(setting.topic, value)
        elif setting.topic == "mig":
            yield SHARING.error(value.place, f"MIG: {value.value}", "migStrategy: none, no mig.config label")
        else:
            yield SHARING.error(value.place, f"GPUs are shared: {value.value}", "no sharing section")


def topology_manager(world: World, config: Config) -> Iterator[Finding]:
    """The node class of an engine's pool has single-numa-node."""
    fix = "kubelet topologyManagerPolicy: single-numa-node (spec.kubelet, or the user data's NodeConfig)"
    classes = {one.name: one for one in world.node_classes}
    done: set[str] = set()
    for pool in _engine_pools(world):
        name = pool.node_class
        if isinstance(name, Unknown):
            yield TOPOLOGY.unknown(f"node class of pool {pool.name}", name)
        elif name is None or name.value not in classes:
            if config.whole:
                missing = Unknown("its node class isn't in the input", pool.place)
                yield TOPOLOGY.unknown(f"topology of pool {pool.name}", missing, "add its EC2NodeClass to the input")
        elif name.value not in done:
            done.add(name.value)
            found = classes[name.value]
            policy, scope = found.topology_policy, found.topology_scope
            if isinstance(policy, Unknown):
                yield TOPOLOGY.unknown("topologyManagerPolicy", policy, fix)
            elif policy is None:
                yield TOPOLOGY.error(found.place, "topologyManagerPolicy isn't given, so it is none", fix)
            elif policy.value != "single-numa-node":
                yield TOPOLOGY.error(policy.place, f"topologyManagerPolicy is {policy.value}", fix)
            if isinstance(scope, Known) and scope.value not in {"pod", "container"}:
                yield TOPOLOGY.error(scope.place, f"topologyManagerScope is {scope.value}", "pod")


def pool_pods(world: World, config: Config) -> Iterator[Finding]:
    """A pool of engines keeps other GPU pods off, and every GPU pod that may land on it has four GPUs."""
    for pool in _engine_pools(world):
        if not any(taint.effect in {"NoSchedule", "NoExecute"} for taint in pool.taints):
            yield POOL.error(
                pool.place, f"pool {pool.name} has no taint: any GPU pod may land on it", "a NoSchedule taint"
            )
        for workload in world.workloads:
            if lands_on(workload, pool):
                yield from _other_sizes(workload, pool)
    if config.whole:
        for engine in vllm_engines(world):
            if not pools_of(engine.workload, world):
                missing = Unknown("no pool of the input takes it", engine.workload.place)
                yield POOL.unknown(f"where {engine.workload.name} lands", missing, "add its NodePool to the input")


def _other_sizes(workload: Workload, pool: Pool) -> Iterator[Finding]:
    total, place = 0, workload.pod.place
    for amount in workload.pod.gpus:
        count = amount.count
        if isinstance(count, Unknown):
            yield POOL.unknown(f"GPUs of {workload.kind} {workload.name}", count)
            return
        if amount.resource == NVIDIA_GPU and count is not None:
            total, place = total + count.value, count.place
    if total not in {0, TP}:
        what = f"{workload.kind} {workload.name} has {total} GPUs and may land on pool {pool.name}"
        yield POOL.error(place, what, f"{TP} GPUs, or no toleration of the pool's taint")


def _engine_pools(world: World) -> list[Pool]:
    engines = list(vllm_engines(world))
    return [pool for pool in world.pools if any(lands_on(engine.workload, pool) for engine in engines)]


RULES = (one_node, nvlink, nvlink_narrowed, visible_devices, gpu_sharing, topology_manager, pool_pods)
