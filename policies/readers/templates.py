"""Pod templates inside objects, wherever a kind keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from srvmod.policies.facts import Fact, Group, Known, Unknown
from srvmod.policies.readers import declared, unreadable
from srvmod.policies.readers.objects import KubeObject
from srvmod.policies.readers.programs import Program
from srvmod.policies.readers.tree import Cursor, Mapping, Node, Scalar, Sequence

MOST_SEARCHED = 200_000
"""Nodes looked at in one object of an unknown kind: aliases may make a tree huge."""
MOST_SEARCH_DEPTH = 40
# Objects that hold schemas, data or rules, never pods of their own.
NEVER = {
    "CustomResourceDefinition", "ConfigMap", "Secret", "PrometheusRule", "ValidatingAdmissionPolicy", "Role",
    "ClusterRole", "ServiceMonitor", "PodMonitor", "Kustomization", "ClusterPolicy", "Policy",
}  # fmt: skip


BUILT_IN = (".k8s.io", "apps", "batch", "policy", "autoscaling")
"""Groups of Kubernetes' own kinds, by how they end: none of them makes engines from fields."""


@dataclass(frozen=True, slots=True)
class Template:
    """A pod template: cursors on its pod spec and its metadata, and the group it belongs to."""

    spec: Cursor
    metadata: Cursor
    group: Group | None = None
    role: str = ""
    """What the template is for in its object, such as `worker`; empty for the only one."""
    replicas: Cursor | None = None
    single: Cursor | None = None
    """The only container, where it stands outside of `spec.containers`."""
    declared: tuple[Program, ...] = ()
    """Engines that the object's fields describe; they run in the first container."""
    open_words: str = ""
    """Why its engines may be given options that aren't in it."""
    unreadable: Unknown | None = None
    """Why it may be an engine although nothing in it can be read."""

    def containers(self) -> list[Cursor]:
        """The containers that run beside each other: init containers that stay are among them."""
        if self.unreadable is not None:
            return []
        if self.single is not None:
            return [self.single]
        return [*self.spec["containers"].items(), *self.sidecars(), *self.spec["ephemeralContainers"].items()]

    def sidecars(self) -> list[Cursor]:
        """Init containers that stay."""
        return [one for one in self.spec["initContainers"].items() if one["restartPolicy"].raw() == "Always"]


def of_object(thing: KubeObject) -> list[Template]:  # noqa: PLR0911 - one per kind
    """The pod templates of an object."""
    root = thing.root
    spec = root["spec"]
    kind = thing.kind
    if kind in NEVER:
        return []
    if kind == "Pod":
        return [Template(spec, root["metadata"])]
    if kind in {"Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Job"} and spec:
        return [_pod_template(spec["template"], replicas=spec["replicas"])]
    if kind == "CronJob":
        return [_pod_template(spec.at("jobTemplate", "spec", "template"))]
    if kind == "LeaderWorkerSet":
        return _leader_worker(spec)
    if kind in {"RayCluster", "RayService", "RayJob"}:
        keys = {"RayCluster": (), "RayService": ("rayClusterConfig",), "RayJob": ("rayClusterSpec",)}[kind]
        return _ray(spec.at(*keys), declared.ray_serve(spec["serveConfigV2"]))
    if kind == "InferenceService":
        return _inference_service(spec)
    if kind in {"LLMInferenceService", "LLMInferenceServiceConfig"}:
        return _llm_inference_service(spec)
    if kind in {"ServingRuntime", "ClusterServingRuntime"}:
        return [Template(spec, spec)]
    found = list(_anywhere(root))
    # Whoever brings pods has said what they run; other kinds may say it in words of their own.
    if not found and thing.group and not thing.group.endswith(BUILT_IN) and (why := unreadable.reason(thing)):
        found.append(Template(spec, root["metadata"], unreadable=why))
    return found


def _pod_template(
    template: Cursor, group: Group | None = None, role: str = "", replicas: Cursor | None = None
) -> Template:
    return Template(template["spec"], template["metadata"], group, role, replicas)


def _leader_worker(spec: Cursor) -> list[Template]:
    inner = spec["leaderWorkerTemplate"]
    size = inner["size"].integer() or Known(1, inner.place, "")
    group = Group(size, "leaderWorkerTemplate.size")
    return [
        _pod_template(inner[key], group, role, spec["replicas"])
        for key, role in (("leaderTemplate", "leader"), ("workerTemplate", "worker"))
        if inner[key]
    ]


def _ray(cluster: Cursor, engines: tuple[Program, ...]) -> list[Template]:
    workers = [*cluster["workerGroupSpecs"].items()]
    templates = [_pod_template(cluster.at("headGroupSpec", "template"), None, "head")]
    for one in workers:
        templates.append(_pod_template(one["template"], None, "worker", one["replicas"]))
    templates = [template for template in templates if template.spec]
    if engines:
        # They run where the GPUs are; a cluster without workers has only its head.
        with_gpus = [one for one in templates if "nvidia.com/gpu" in str(_limits(one))]
        chosen = (with_gpus or templates or [Template(cluster, cluster)])[0]
        templates = [replace(one, declared=engines) if one is chosen else one for one in templates] or [
            replace(chosen, declared=engines)
        ]
    return templates


def _limits(template: Template) -> list[str]:
    return [
        key
        for container in template.containers()
        for part in ("limits", "requests")
        for key, _ in container.at("resources", part).entries()
    ]


def _inference_service(spec: Cursor) -> list[Template]:
    predictor = spec["predictor"]
    worker = predictor["workerSpec"]
    group = None
    if worker:
        size = worker["pipelineParallelSize"].integer() or worker["size"].integer()
        if size is None:
            size = Known(1, worker.place, "")
        # KServe's worker count is beside the head unless the pipeline size says the total.
        group = Group(_at_least_two(size), "workerSpec")
    single = predictor["model"] if predictor["model"] else None
    engines = declared.kserve_model(predictor)
    return [Template(predictor, predictor, group, "", predictor["minReplicas"], single, engines)]


def _at_least_two(size: Fact[int]) -> Fact[int]:
    return size if isinstance(size, Unknown) else Known(max(2, size.value), size.place, size.text)


def _llm_inference_service(spec: Cursor) -> list[Template]:
    templates: list[Template] = []
    for part, role in ((spec, ""), (spec["prefill"], "prefill")):
        if not part:
            continue
        worker = part["worker"]
        group = Group(Known(2, worker.place, "a head and workers"), "worker") if worker else None
        base = part["template"] if part["template"] else Cursor(Mapping({}, {}, part.place.line), part.place)
        engines = declared.llm_inference_service(part, spec["baseRefs"])
        templates.append(Template(base, part, group, role, part["replicas"], declared=engines))
        if worker:
            templates.append(Template(worker, part, group, f"{role} worker".strip(), None))
    return templates


def _anywhere(root: Cursor) -> Iterator[Template]:
    """Every mapping that holds a list of containers, in custom resources of any kind."""
    if not _holds_containers(root.node):
        return
    seen: set[int] = set()
    stack: list[tuple[Cursor, Cursor, int]] = [(root, root["metadata"], 0)]
    looked = 0
    while stack:
        cursor, metadata, depth = stack.pop()
        node: Node | None = cursor.node
        if not isinstance(node, Mapping | Sequence) or id(node) in seen:
            continue
        seen.add(id(node))
        looked += 1
        if looked > MOST_SEARCHED or depth > MOST_SEARCH_DEPTH:
            continue
        if isinstance(node, Sequence):
            stack.extend((child, metadata, depth + 1) for child in reversed(list(cursor.items())) if _deep(child))
            continue
        if _containers(node.entries.get("containers")):
            yield Template(cursor, metadata, role=cursor.place.path, replicas=None)
            continue
        own = cursor["metadata"] if "metadata" in node.entries else metadata
        for _, child in cursor.entries():
            if _single(child.node):
                yield Template(cursor, own, role=cursor.place.path, single=child)
        stack.extend((child, own, depth + 1) for _, child in reversed(list(cursor.entries())) if _deep(child))


def _holds_containers(root: Node | None) -> bool:
    """A quick look without places: most objects hold no pod."""
    stack, seen = [root], set[int]()
    while stack and len(seen) <= MOST_SEARCHED:
        node = stack.pop()
        if not isinstance(node, Mapping | Sequence) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Sequence):
            stack.extend(node.items)
        elif _containers(node.entries.get("containers")) or any(map(_single, node.entries.values())):
            return True
        else:
            stack.extend(node.entries.values())
    return False


def _deep(cursor: Cursor) -> bool:
    return isinstance(cursor.node, Mapping | Sequence)


def _single(node: Node | None) -> bool:
    """Whether a node is a container by itself, as workflows and some operators have it."""
    if not isinstance(node, Mapping) or not isinstance(node.entries.get("image"), Scalar):
        return False
    return any(isinstance(node.entries.get(key), Sequence) for key in ("command", "args"))


def _containers(node: Node | None) -> bool:
    """Whether a node is a list of containers, rather than anything else of that name."""
    if not isinstance(node, Sequence):
        return False
    for item in node.items:
        if isinstance(item, Mapping) and {"image", "command", "args", "resources"} & item.entries.keys():
            return True
    return False
