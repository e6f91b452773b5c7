"""OPERATIONS: what makes engines restart, hang or cut streams although every clause is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator

from srvmod.contract import P5_48XLARGE
from srvmod.policies.config import Config
from srvmod.policies.facts import Engine, Known, Maybe, Place, Pool, Rollout, Unknown, World
from srvmod.policies.rules.finding import Finding, Maker, Topic
from srvmod.policies.rules.subjects import engines_at_least, lands_on, pools_of, vllm_engines

OPS = Topic.OPERATIONS
PROBES = Maker(OPS, "probes", "an engine loads for minutes and answers slowly under load: hasty probes kill it")
DRAIN = Maker(OPS, "drain", "every running stream is cut when the engine stops")
ROLLOUT = Maker(OPS, "rollout", "there is no spare island: a new engine can only start where an old one ended")
LINKS = Maker(OPS, "service-links", "a Service named vllm sets VLLM_PORT to a URI, and the engine doesn't start")
SHM = Maker(OPS, "shared-memory", "NCCL and the workers' queues don't fit in the 64 MiB that containers get")
GUARANTEED = Maker(
    OPS, "guaranteed", "without whole CPUs, equal in requests and limits, CPUs aren't pinned to the island"
)
WHOLE_CORES = Maker(
    OPS, "whole-cores", "a kubelet with full-pcpus-only refuses the whole pod with SMTAlignmentError: it never starts"
)
THREADS = P5_48XLARGE.threads_per_core

LEAST_STARTUP_SECONDS = 300
"""72 GB of weights, compilation and graph capture; reports of 4 to 10 minutes."""
LEAST_PROBE_TIMEOUT_SECONDS = 5
LEAST_SHM_BYTES = 1 << 30
INJECTED = {"LLMInferenceService", "InferenceService", "RayService"}
"""Kinds whose controllers add probes, preStop, grace and /dev/shm to what the object says."""
VLLM_SERVICE = re.compile(r"vllm(-|$)")


def probes(world: World, config: Config) -> Iterator[Finding]:
    """Readiness; start-up before liveness counts; time-outs that survive load."""
    del config
    for engine in vllm_engines(world):
        if engine.readiness is None and engine.workload.kind not in INJECTED:
            yield PROBES.error(engine.place, "has no readinessProbe", "httpGet /health on the engine's port")
        if engine.liveness is not None and engine.startup is None:
            delay = engine.liveness.initial_delay
            if not (isinstance(delay, Known) and delay.value >= LEAST_STARTUP_SECONDS):
                fix = "a startupProbe on /health, failureThreshold × periodSeconds of 20 minutes"
                yield PROBES.error(engine.liveness.place, "has a livenessProbe and no startupProbe", fix)
        if engine.startup is not None:
            total = _times(engine.startup.period, 10) * _times(engine.startup.failures, 3)
            if total < LEAST_STARTUP_SECONDS:
                what = f"startupProbe gives up after {total} s"
                yield PROBES.error(engine.startup.place, what, f"at least {LEAST_STARTUP_SECONDS} s")
        if engine.liveness is not None and _times(engine.liveness.timeout, 1) < LEAST_PROBE_TIMEOUT_SECONDS:
            what = f"livenessProbe gives up on an answer after {_times(engine.liveness.timeout, 1)} s"
            yield PROBES.warning(engine.liveness.place, what, f"timeoutSeconds: at least {LEAST_PROBE_TIMEOUT_SECONDS}")


def _times(fact: Maybe[int], default: int) -> int:
    return fact.value if isinstance(fact, Known) else default


def drain(world: World, config: Config) -> Iterator[Finding]:
    """preStop, then vLLM's own drain, then the end: all within the grace period."""
    del config
    for engine in vllm_engines(world):
        timeout = engine.line.number("shutdown_timeout")
        if isinstance(timeout, Unknown):
            yield DRAIN.unknown("shutdown_timeout", timeout, "--shutdown-timeout=60")
            continue
        seconds = float(timeout.value) if timeout is not None else 0.0
        if seconds <= 0:
            said = "is 0" if timeout is not None else "isn't given, so it is 0"
            place = timeout.place if timeout is not None else engine.line.place
            yield DRAIN.error(place, f"shutdown_timeout {said}: SIGTERM aborts all streams", "--shutdown-timeout=60")
        yield from _grace(engine, seconds)


def _grace(engine: Engine, seconds: float) -> Iterator[Finding]:
    grace = engine.workload.pod.grace
    injected = engine.workload.kind in INJECTED
    if engine.pre_stop is None and not injected:
        yield DRAIN.error(
            engine.place,
            "has no preStop: the proxy still sends requests to it",
            "lifecycle.preStop.sleep: {seconds: 15}",
        )
    before = engine.pre_stop.value if isinstance(engine.pre_stop, Known) else 0
    given = grace.value if isinstance(grace, Known) else 30
    if isinstance(grace, Unknown):
        yield DRAIN.unknown("terminationGracePeriodSeconds", grace)
    elif given <= before + seconds and not (injected and grace is None):
        place = grace.place if grace is not None else engine.workload.pod.place
        said = "" if grace is not None else " (Kubernetes' default)"
        what = f"terminationGracePeriodSeconds is {given}{said}, preStop and shutdown_timeout take {before + seconds:g}"
        yield DRAIN.error(place, what, f"more than {before + seconds:g}, with some seconds for the workers' end")


def rollout(world: World, config: Config) -> Iterator[Finding]:
    """An update may take an engine down before the new one is up."""
    del config
    done: set[Place] = set()
    for engine in vllm_engines(world):
        workload = engine.workload
        if workload.rollout is None or workload.kind not in {"Deployment", "DeploymentConfig"}:
            continue
        if workload.rollout.place in done:
            continue
        done.add(workload.rollout.place)
        replicas = engines_at_least(workload, world)
        count = replicas.value if isinstance(replicas, Known) else 1
        yield from _rollout(workload.rollout, count)


def _rollout(given: Rollout, replicas: int) -> Iterator[Finding]:
    kind = given.kind.value if isinstance(given.kind, Known) else "RollingUpdate"
    if kind == "Recreate":
        yield ROLLOUT.warning(given.place, "Recreate takes all engines down at once", "maxSurge: 0, maxUnavailable: 1")
        return
    for name, fact in (("maxUnavailable", given.max_unavailable), ("maxSurge", given.max_surge)):
        if isinstance(fact, Unknown):
            yield ROLLOUT.unknown(name, fact)
            return
    down = given.max_unavailable.value if isinstance(given.max_unavailable, Known) else "25%"
    if share(down, replicas) == 0:
        place = given.max_unavailable.place if given.max_unavailable is not None else given.place
        what = f"maxUnavailable {down} of {replicas} engines is 0: the update waits for a free island"
        yield ROLLOUT.error(place, what, "maxSurge: 0, maxUnavailable: 1")


def share(text: str, replicas: int) -> int:
    """Pods of a number or a percentage, rounded down as Kubernetes does for maxUnavailable."""
    text = text.strip()
    if re.fullmatch(r"\d{1,3}%", text):
        return int(text[:-1]) * replicas // 100
    return int(text) if re.fullmatch(r"\d{1,6}", text) else 0


def service_links(world: World, config: Config) -> Iterator[Finding]:
    """`enableServiceLinks: false`, at least where a Service named vllm is near."""
    del config
    for engine in vllm_engines(world):
        links = engine.workload.pod.service_links
        if isinstance(links, Known) and not links.value:
            continue
        if isinstance(links, Unknown):
            yield LINKS.unknown("enableServiceLinks", links, "enableServiceLinks: false")
            continue
        namespace = engine.workload.namespace
        named = [
            one
            for one in world.services
            if VLLM_SERVICE.match(one.name) and (one.namespace or namespace) in {namespace, ""}
        ]
        place = links.place if links is not None else engine.workload.pod.place
        if named:
            what = f"Service {named[0].name} sets VLLM_* variables in the engine's pod"
            yield LINKS.error(place, what, "enableServiceLinks: false")
        else:
            what = "Services of the namespace become variables; one named vllm would stop the engine"
            yield LINKS.warning(place, what, "enableServiceLinks: false")


def shared_memory(world: World, config: Config) -> Iterator[Finding]:
    """A memory volume at /dev/shm."""
    del config
    fix = "a volume emptyDir {medium: Memory, sizeLimit: 32Gi} mounted at /dev/shm"
    for engine in vllm_engines(world):
        size = engine.line.integer("tensor_parallel_size")
        if size is None or (isinstance(size, Known) and size.value < 2):
            continue
        shm = engine.workload.pod.shm
        if isinstance(shm, Unknown):
            yield SHM.unknown("the size of /dev/shm", shm, fix)
        elif shm is None and engine.workload.kind in INJECTED:
            continue
        elif shm is None:
            yield SHM.error(engine.workload.pod.place, "/dev/shm is the container's own, 64 MiB", fix)
        elif 0 < shm.value < LEAST_SHM_BYTES:
            yield SHM.error(shm.place, f"/dev/shm has {shm.text}", fix)


def guaranteed(world: World, config: Config) -> Iterator[Finding]:
    """Whole CPUs and the same memory in requests and limits."""
    del config
    for engine in vllm_engines(world):
        cpu, memory = engine.cpu, engine.memory
        if cpu is None or memory is None:
            continue
        limits = (cpu.limited, memory.limited)
        if any(isinstance(fact, Unknown) for fact in (*limits, cpu.requested, memory.requested)):
            continue
        same = all(
            isinstance(limit, Known) and (asked is None or (isinstance(asked, Known) and asked.value == limit.value))
            for asked, limit in ((cpu.requested, cpu.limited), (memory.requested, memory.limited))
        )
        whole = isinstance(cpu.limited, Known) and cpu.limited.value % 1000 == 0
        if not (same and whole):
            what = "CPU and memory aren't whole and equal in requests and limits"
            yield GUARANTEED.warning(engine.place, what, "requests equal to limits, a whole number of CPUs")


def whole_cores(world: World, config: Config) -> Iterator[Finding]:
    """Each container's own CPUs are whole cores where the pool's kubelets give out nothing else."""
    del config
    classes = {one.name: one for one in world.node_classes}
    pools = {pool.place: pool for engine in vllm_engines(world) for pool in pools_of(engine.workload, world)}
    strict: list[Pool] = []
    for pool in pools.values():
        found = classes.get(pool.node_class.value) if isinstance(pool.node_class, Known) else None
        option = found.whole_cores if found is not None else None
        if isinstance(option, Known) and option.value.lower() == "true":
            strict.append(pool)
    fix = f"a multiple of {THREADS} CPUs, the threads of a core of {P5_48XLARGE.name}"
    for workload in world.workloads if strict else ():
        if not any(lands_on(workload, pool) for pool in strict):
            continue
        for cpus in workload.pod.exclusive_cpus:
            if isinstance(cpus, Unknown):
                yield WHOLE_CORES.unknown(f"CPUs of {workload.kind} {workload.name}", cpus, fix)
            elif cpus.value // 1000 % THREADS:
                what = f"a container of {workload.kind} {workload.name} has {cpus.value // 1000} CPUs of its own"
                yield WHOLE_CORES.error(cpus.place, what, fix)


RULES = (probes, drain, rollout, service_links, shared_memory, guaranteed, whole_cores)
