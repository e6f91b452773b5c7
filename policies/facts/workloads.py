"""What runs in the cluster, as the checks see it: pods, engines and other workloads with GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from srvmod.policies.facts.options import CommandLine
from srvmod.policies.facts.values import Fact, Maybe, Place, Unknown

NVIDIA_GPU = "nvidia.com/gpu"


class Software(StrEnum):
    """What serves the model. Named by its program or image; verdicts about batching never rest on the name alone."""

    VLLM = "vllm"
    SIMULATED = "simulated"
    SGLANG = "sglang"
    TGI = "tgi"
    TENSORRT_LLM = "tensorrt-llm"
    TRITON = "triton"
    TRANSFORMERS = "transformers"
    LLAMA_CPP = "llama.cpp"
    TORCHSERVE = "torchserve"
    LMDEPLOY = "lmdeploy"
    OLLAMA = "ollama"
    DJL = "djl-serving"
    FASTCHAT = "fastchat"
    NIM = "nim"


@dataclass(frozen=True, slots=True)
class Amount:
    """Devices of one extended resource in a container's requests and limits. Kubernetes takes the limit as request
    where only the limit is given."""

    resource: str
    requested: Maybe[int]
    limited: Maybe[int]

    @property
    def count(self) -> Maybe[int]:
        """What the scheduler counts."""
        return self.requested if self.requested is not None else self.limited


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe of any kind. Times in seconds."""

    place: Place
    period: Maybe[int]
    timeout: Maybe[int]
    failures: Maybe[int]
    initial_delay: Maybe[int]


@dataclass(frozen=True, slots=True)
class Toleration:
    """One toleration; an empty key with `Exists` tolerates every taint."""

    key: str
    operator: str
    value: str
    effect: str


@dataclass(frozen=True, slots=True)
class Requirement:
    """A node label that must (or must not) have one of some values."""

    key: str
    operator: str
    values: tuple[str, ...]
    place: Place


@dataclass(frozen=True, slots=True)
class Pod:
    """The pod around a container. Times in seconds, sizes in bytes."""

    place: Place
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    requirements: tuple[Requirement, ...]
    """From nodeSelector and required node affinity (terms of one alternative only)."""
    tolerations: tuple[Toleration, ...]
    open_selection: bool
    """Node affinity has several alternatives, so that the node can't be established."""
    grace: Maybe[int]
    service_links: Maybe[bool]
    exclusive_cpus: tuple[Fact[int], ...]
    """CPUs in thousandths of each container that a static CPU manager gives its own: whole ones of a Guaranteed pod."""
    shm: Maybe[int]
    """Size of the memory volume mounted at /dev/shm; 0 when it has no limit. None: the runtime's 64 MiB."""
    gpus: tuple[Amount, ...]
    """NVIDIA resources of all containers together, one entry per container and resource."""
    alternatives: tuple[Requirement, ...] = ()
    """From required node affinity that has several terms: a node satisfies one of them."""


@dataclass(frozen=True, slots=True)
class Rollout:
    """How pods are replaced. Numbers may be percentages, as Kubernetes takes them."""

    place: Place
    kind: Maybe[str]
    max_surge: Maybe[str]
    max_unavailable: Maybe[str]


@dataclass(frozen=True, slots=True)
class Group:
    """Pods that work as one engine: LeaderWorkerSet, Ray workers, KServe worker specs."""

    size: Fact[int]
    what: str


@dataclass(frozen=True, slots=True)
class Workload:
    """An object with a pod template: Deployment, CronJob, RayCluster, any custom resource that embeds one."""

    place: Place
    kind: str
    api_version: str
    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    replicas: Maybe[int]
    rollout: Rollout | None
    pod: Pod
    daemon: bool = False
    group: Group | None = None
    at_once: Maybe[int] = None
    """Requests that its platform hands to one pod at a time (`containerConcurrency`); 0 is no limit."""
    batcher: Place | None = None
    """A batcher that gathers requests in front of the engine."""
    deadline: Maybe[int] = None
    """Seconds after which its platform gives a request up."""


@dataclass(frozen=True, slots=True)
class Engine:
    """One container that serves a model, and what surrounds it."""

    place: Place
    workload: Workload
    container: str
    software: Software
    line: CommandLine
    """Words and resolved options; empty for software whose options aren't read."""
    env: Mapping[str, Fact[str]]
    image: Maybe[str]
    gpus: tuple[Amount, ...]
    startup: Probe | None
    readiness: Probe | None
    liveness: Probe | None
    pre_stop: Maybe[int]
    """Seconds that preStop takes at least; None without preStop."""
    open_env: Unknown | None = None
    """Why variables may be set that aren't in `env`."""
    cpu: Amount | None = None
    """CPUs in thousandths."""
    memory: Amount | None = None


@dataclass(frozen=True, slots=True)
class Suspect:
    """What looks like an engine whose command line can't be established."""

    workload: Workload
    what: str
    """As in "container engine"; an object of a kind that runs engines by fields of its own is named by its kind."""
    unknown: Unknown
