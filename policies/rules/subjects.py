"""Which engines a rule judges, and what surrounds them: their pools, their Services, their share of the sessions."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from srvmod.policies.config import Config
from srvmod.policies.facts import (
    Engine,
    Known,
    Maybe,
    Name,
    Place,
    Pool,
    Requirement,
    Route,
    Scaler,
    Service,
    Software,
    Unknown,
    Workload,
    World,
)
from srvmod.policies.rules.index import index

VLLM = {Software.VLLM, Software.SIMULATED}
NOT_GENERATING = {"pooling", "draft"}
SESSIONS_ANNOTATION = "srvmod.dev/sessions"
CHAT = ("/v1/chat/completions", "/v1/completions")
# Labels that every node has whatever its pool says; a pool that doesn't restrict them may have any value.
WELL_KNOWN = (
    "kubernetes.io/", "node.kubernetes.io/", "topology.kubernetes.io/", "karpenter.sh/", "karpenter.k8s.aws/",
    "eks.amazonaws.com/", "beta.kubernetes.io/", "topology.k8s.aws/",
)  # fmt: skip
ENGINES_ANNOTATION = "srvmod.dev/engines"
"""Engines that run whatever the load, as the object itself notes them for admission: a scaler sets its replicas, and an
object without them gets one."""


def pooling(engine: Engine) -> bool:
    """Whether an engine makes embeddings or scores: it streams nothing, so the clauses don't speak of it."""
    runner = engine.line.given.get("runner")
    return isinstance(runner, Known) and runner.value in NOT_GENERATING


def vllm_engines(world: World) -> Iterator[Engine]:
    """Engines that take vLLM's options and generate."""
    return (engine for engine in world.engines if engine.software in VLLM and not pooling(engine))


def lands_on(workload: Workload, pool: Pool) -> bool:
    """Whether a workload's pods may run on a pool's nodes, by taints and by node selection."""
    pod = workload.pod
    if not all(taint.tolerated_by(pod.tolerations) for taint in pool.taints):
        return False
    return pod.open_selection or all(_may_match(one, pool) for one in pod.requirements)


def _may_match(wanted: Requirement, pool: Pool) -> bool:
    label = pool.labels.get(wanted.key)
    offered = (label,) if label is not None else None
    if offered is None:
        offered = next((r.values for r in pool.requirements if r.key == wanted.key and r.operator == "In"), None)
    if wanted.operator == "In":
        if offered is None:
            return wanted.key.startswith(WELL_KNOWN)
        return bool(set(offered) & set(wanted.values))
    if wanted.operator == "NotIn":
        return offered is None or not set(offered) <= set(wanted.values)
    if wanted.operator == "Exists":
        return offered is not None or wanted.key.startswith(WELL_KNOWN)
    if wanted.operator == "DoesNotExist":
        return offered is None
    return True


def pools_of(workload: Workload, world: World) -> list[Pool]:
    """The pools of the input that a workload may land on."""
    return [pool for pool in world.pools if lands_on(workload, pool)]


SCALED = {"Deployment", "StatefulSet", "ReplicaSet", "ReplicationController"}
"""Kinds that a scaler names as they are; a custom resource's own scaler may name what its controller makes of it."""


def scaler_of(workload: Workload, world: World) -> Scaler | None:
    """The scaler that sets a workload's replicas; of several of the name (manifests of more than one environment) the
    one whose file lies nearest."""
    found = [
        scaler
        for scaler in index(world).scalers.get(workload.name, ())
        if (not scaler.namespace or not workload.namespace or scaler.namespace == workload.namespace)
        and (scaler.target_kind == workload.kind or workload.kind not in SCALED)
    ]
    return max(found, key=lambda scaler: _nearness(scaler.place, workload.place), default=None)


def _nearness(one: Place, other: Place) -> int:
    """Folders that two files have in common, and one more for the same file."""
    pairs = zip(one.source.split("/"), other.source.split("/"), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def services_of(engine: Engine, world: World) -> list[Service]:
    """Services that select an engine's pods."""
    labels = engine.workload.pod.labels
    namespace = engine.workload.namespace
    by_label = index(world).services
    return [
        one
        for label in labels.items()
        for one in by_label.get(label, ())
        if one.selector.items() <= labels.items() and (not one.namespace or not namespace or one.namespace == namespace)
    ]


def serving_routes(world: World) -> list[Route]:
    """Routes that lead to an engine: by their Service, or by the paths of the API where the Service isn't at hand."""
    names = engine_services(world)
    known = {service.name for service in world.services}
    found: list[Route] = []
    for route in world.routes:
        by_path = any(path.startswith(CHAT) or path.rstrip("/") == "/v1" for path in route.paths)
        elsewhere = not any(one.name in known for one in route.services)
        leads = any(one.means(other) for one in route.services for other in names.get(one.name, ()))
        if leads or (by_path and elsewhere):
            found.append(route)
    return found


def engine_services(world: World) -> dict[str, list[Name]]:
    """Services that select engines, by their names."""
    found: dict[str, list[Name]] = {}
    for engine in world.engines:
        for service in services_of(engine, world):
            found.setdefault(service.name, []).append(Name(service.namespace, service.name))
    return found


def engines_at_least(workload: Workload, world: World) -> Maybe[int]:
    """Engines that run whatever the load: the scaler's minimum, or the replicas."""
    scaler = scaler_of(workload, world)
    if scaler is not None:
        default = 0 if scaler.kind == "ScaledObject" else 1
        return scaler.least if scaler.least is not None else Known(default, scaler.place, "")
    return workload.replicas


def sessions_per_engine(engine: Engine, world: World, config: Config) -> Known[int] | Unknown:
    """Sessions that one engine carries when the declared sessions are there and only the minimum of engines is."""
    workload = engine.workload
    declared = workload.annotations.get(SESSIONS_ANNOTATION)
    if declared is not None and not (declared.isdigit() and int(declared[:9]) > 0):
        return Unknown(f"annotation {SESSIONS_ANNOTATION} = {declared!r} isn't a number of sessions", workload.place)
    sessions = int(declared[:9]) if declared else config.sessions
    engines = engines_at_least(workload, world)
    if isinstance(engines, Unknown):
        return engines
    if engines is None:
        if config.whole or workload.kind not in {"Deployment", "StatefulSet", "Rollout", "ReplicaSet"}:
            engines = Known(1, workload.place, "")
        else:
            return Unknown("neither replicas nor a scaler's minimum is in the input", workload.place)
    share = -(-sessions // max(1, engines.value))
    return Known(share, engines.place, f"{sessions} sessions over {max(1, engines.value)} engines")


def longest_answer_seconds(world: World, config: Config, itl_ms: float) -> float:
    """How long the longest stream takes at the slowest pace that is allowed."""
    lengths = [
        length.value
        for engine in vllm_engines(world)
        if isinstance(length := engine.line.integer("max_model_len"), Known) and length.value > 0
    ]
    shape = config.shape(config.model)
    tokens = max(lengths, default=shape.context_tokens if shape else 0)
    return tokens * itl_ms / 1e3
