"""A pod template as facts: where the pod lands, what it holds, how it is replaced."""

from __future__ import annotations

from collections.abc import Iterator

from srvmod.policies.facts import (
    NVIDIA_GPU,
    Amount,
    Known,
    Maybe,
    Pod,
    Requirement,
    Rollout,
    Toleration,
    Workload,
)
from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.pinning import exclusive_cpus
from srvmod.policies.readers.quantities import quantity, whole
from srvmod.policies.readers.templates import Template
from srvmod.policies.readers.tree import Cursor

ROLLOUT_KEYS = {"StatefulSet": "updateStrategy", "DaemonSet": "updateStrategy"}
# Kinds that keep replicas and a pod template the way a Deployment does.
PLAIN = {"Deployment", "StatefulSet", "ReplicaSet", "DeploymentConfig", "Rollout"}


def workload(thing: KubeObject, template: Template) -> Workload:
    """A template's workload."""
    root = thing.root
    spec = root["spec"]
    replicas = template.replicas or spec["replicas"]
    return Workload(
        place=template.spec.place,
        kind=thing.kind,
        api_version=thing.api_version,
        name=thing.name,
        namespace=thing.namespace,
        labels=root.at("metadata", "labels").texts(),
        annotations=root.at("metadata", "annotations").texts() | template.metadata["annotations"].texts(),
        replicas=replicas.integer(),
        rollout=_rollout(thing.kind, spec),
        pod=pod(template),
        daemon=thing.kind == "DaemonSet",
        group=template.group,
        at_once=template.spec["containerConcurrency"].integer(),
        batcher=template.spec["batcher"].place if template.spec["batcher"] else None,
        deadline=_deadline(thing, template.spec),
    )


def _deadline(thing: KubeObject, spec: Cursor) -> Maybe[int]:
    """KServe and Knative give a request up by a field of their own beside the pod's."""
    if thing.kind == "InferenceService":
        return spec["timeout"].integer()
    return spec["timeoutSeconds"].integer() if thing.group == "serving.knative.dev" else None


def _rollout(kind: str, spec: Cursor) -> Rollout | None:
    if kind not in PLAIN | {"DaemonSet"}:
        return None
    strategy = spec[ROLLOUT_KEYS.get(kind, "strategy")]
    rolling = strategy["rollingUpdate"]
    return Rollout(
        strategy.place, strategy["type"].string(), rolling["maxSurge"].string(), rolling["maxUnavailable"].string()
    )


def pod(template: Template) -> Pod:
    """The pod around the containers."""
    spec = template.spec
    requirements, several = _requirements(spec)
    return Pod(
        place=spec.place,
        labels=template.metadata["labels"].texts(),
        annotations=template.metadata["annotations"].texts(),
        requirements=tuple(requirements),
        tolerations=tuple(_tolerations(spec)),
        open_selection=several,
        alternatives=_alternatives(spec),
        grace=spec["terminationGracePeriodSeconds"].integer(),
        service_links=spec["enableServiceLinks"].boolean(),
        exclusive_cpus=exclusive_cpus(spec),
        shm=_shm(spec),
        gpus=tuple(
            amount
            for container in (*template.containers(), *spec["initContainers"].items())
            for amount in gpu_amounts(container)
        ),
    )


def amount(container: Cursor, resource: str, factor: float = 1) -> Amount:
    """One resource of a container. A whole count for devices, thousandths of CPUs with factor 1000."""
    requests, limits = container.at("resources", "requests"), container.at("resources", "limits")
    requested, limited = quantity(requests[resource]), quantity(limits[resource])
    rounds = factor != 1 or resource == "memory"
    return Amount(resource, whole(requested, factor, fractions=rounds), whole(limited, factor, fractions=rounds))


def gpu_amounts(container: Cursor) -> Iterator[Amount]:
    """NVIDIA devices: whole GPUs, MIG slices and shared GPUs under their own names."""
    names = dict.fromkeys(
        key
        for part in ("requests", "limits")
        for key, _ in container.at("resources", part).entries()
        if key == NVIDIA_GPU or key.startswith(("nvidia.com/mig-", f"{NVIDIA_GPU}."))
    )
    for name in names:
        yield amount(container, name)


def _requirements(spec: Cursor) -> tuple[list[Requirement], bool]:
    found = [Requirement(key, "In", (child.raw(),), child.place) for key, child in spec["nodeSelector"].entries()]
    terms = _terms(spec)
    if len(terms) == 1:
        found.extend(requirement(one) for one in terms[0]["matchExpressions"].items())
    return found, len(terms) > 1


def _terms(spec: Cursor) -> list[Cursor]:
    affinity = spec.at("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
    return list(affinity["nodeSelectorTerms"].items())


def _alternatives(spec: Cursor) -> tuple[Requirement, ...]:
    """What the alternatives of a node affinity ask for, where it has several."""
    terms = _terms(spec)
    several = terms if len(terms) > 1 else []
    return tuple(requirement(one) for term in several for one in term["matchExpressions"].items())


def requirement(one: Cursor) -> Requirement:
    """A node selector's expression."""
    values = tuple(value.raw() for value in one["values"].items())
    return Requirement(one["key"].raw(), one["operator"].raw(), values, one.place)


def _tolerations(spec: Cursor) -> Iterator[Toleration]:
    for one in spec["tolerations"].items():
        yield Toleration(one["key"].raw(), one["operator"].raw() or "Equal", one["value"].raw(), one["effect"].raw())


def _shm(spec: Cursor) -> Maybe[int]:
    """Size of the memory volume at /dev/shm; 0 without a limit, as the node's own is."""
    if spec["hostIPC"].raw() == "true":
        return Known(0, spec["hostIPC"].place, "the node's")
    names = {
        mount["name"].raw()
        for container in (*spec["containers"].items(), *spec["initContainers"].items())
        if any(True for _ in gpu_amounts(container))
        for mount in container["volumeMounts"].items()
        if mount["mountPath"].raw().rstrip("/") == "/dev/shm"
    }
    for volume in spec["volumes"].items():
        if volume["name"].raw() not in names:
            continue
        if volume.at("hostPath", "path").raw().rstrip("/") == "/dev/shm":
            return Known(0, volume.place, "the node's")
        empty = volume["emptyDir"]
        if empty["medium"].raw() == "Memory":
            size = whole(quantity(empty["sizeLimit"]), fractions=True)
            return size if size is not None else Known(0, empty.place, "no limit")
        return None
    return None
