"""The engine: one vLLM server with four GPUs of one NUMA node, as Deployment, Service and what guards them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from srvmod.contract import P5_48XLARGE, EngineKind
from srvmod.infra.draining import PRE_STOP_SECONDS, engine_grace_seconds
from srvmod.infra.labels import (
    ENGINE,
    GPU,
    NAME_LABEL,
    NAMESPACE_LABEL,
    POOL_LABEL,
    POOL_TAINT,
    PREFIX,
    Object,
    labels,
    metadata,
    selector,
    toleration,
)
from srvmod.infra.serving import island_check
from srvmod.infra.serving.documents import engine_flags, island, weight_cache

PORT = 8000
CPUS = 88
"""Of the 96 of a NUMA node; the rest is for the kubelet's reservations and what runs beside (facts of other fleets:
88 CPUs and 900 GiB per four GPUs). Whole cores, as `WAITING_CPUS`."""
WAITING_CPUS = P5_48XLARGE.threads_per_core
"""Of the init container: one core. In a Guaranteed pod its whole CPUs are its own, too, and the pool's kubelets give
out whole cores only (`full-pcpus-only`): one CPU would be refused with SMTAlignmentError, and the whole pod with it."""
MEMORY = "900Gi"
SHARED_MEMORY = "32Gi"
"""/dev/shm for NCCL and vLLM's message queues; counts against the pod's memory. The default is 64 MiB."""
STARTUP_SECONDS = 1200
"""Loading and warming up 72 GB, twice as long as the slowest load reported; only then does liveness count."""
WEIGHTS_WAIT_SECONDS = 600

SCRAPED = {
    "prometheus.io/scrape": "true",
    "prometheus.io/port": str(PORT),
    "prometheus.io/path": "/metrics",
}
"""What Prometheus set-ups without operator look for."""

PROGRAMS: Mapping[EngineKind, tuple[str, ...]] = {
    EngineKind.VLLM: ("vllm",),
    EngineKind.SIMULATED: ("/usr/bin/env", "python3", "-m", "srvmod_engine"),
}
"""The engine's program; both take the words of `vllm serve`."""

WAIT_FOR_WEIGHTS = """\
import pathlib, sys, time
ready, seconds = pathlib.Path(sys.argv[1]), int(sys.argv[2])
end = time.monotonic() + seconds
while not ready.exists():
    if time.monotonic() > end:
        sys.exit(f"{ready} isn't there after {seconds} s: weights on this node are missing or not verified")
    time.sleep(1)
print(f"{ready} found")
"""


@dataclass(frozen=True)
class Engine:
    """An engine as its Deployment describes it. `flags.model_path` is the revision's folder in the container;
    `least` is the scaler's minimum; `pretended` also lets it start on the pretended nodes of a simulated stack, and
    `annotated` makes its pods say how they are scraped, for a Prometheus without operator."""

    namespace: str
    pool: str
    kind: EngineKind
    image: str
    image_pull_policy: str
    gpus: int
    least: int
    revision: str
    flags: engine_flags.EngineFlags
    pretended: bool = False
    annotated: bool = False
    sessions: int | None = None
    """Sessions that all engines together are sized for; checks compare the sequence limit with each engine's share."""
    mix: str | None = None
    """Mean prompt and answer in tokens, and the share of prompts found cached: what policies plan with."""
    plan_waiver: str | None = None
    """Who accepts that the plan misses its targets, and why."""

    @property
    def termination_grace_seconds(self) -> int:
        """preStop, then vLLM's own drain, then the end of its workers."""
        return engine_grace_seconds(self.flags.shutdown_timeout_seconds)


def deployment(engine: Engine) -> Object:
    """Deployment whose pods are replaced one by one, since there is no spare island to surge onto.

    Without `replicas`: they are the scaler's, and a server-side apply that names them would set them back each time.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(ENGINE, engine.namespace, **_sizing(engine)),
        "spec": {
            "revisionHistoryLimit": 5,
            # Boot of a p5, pull of the image, weights and start-up together.
            "progressDeadlineSeconds": 3600,
            "selector": {"matchLabels": selector(ENGINE)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
            "template": {
                "metadata": {
                    "labels": {**labels(ENGINE), f"{PREFIX}engine": engine.kind.value},
                    "annotations": {
                        "karpenter.sh/do-not-disrupt": "true",
                        **island.annotations(),
                        **(SCRAPED if engine.annotated else {}),
                    },
                },
                "spec": pod(engine),
            },
        },
    }


def _sizing(engine: Engine) -> Object:
    """What checks and admission compare the flags with; the least engines also where a scaler sets the replicas."""
    if engine.sessions is None:
        return {}
    return {
        "annotations": {
            f"{PREFIX}sessions": str(engine.sessions),
            f"{PREFIX}engines": str(engine.least),
            **({f"{PREFIX}traffic": engine.mix} if engine.mix else {}),
            **({f"{PREFIX}plan-waiver": engine.plan_waiver} if engine.plan_waiver else {}),
        },
    }


def pod(engine: Engine) -> Object:
    """Guaranteed QoS with whole CPUs and four GPUs: what the Topology Manager needs to keep it on one island."""
    return {
        "automountServiceAccountToken": False,
        # A Service called vllm-something would inject VLLM_PORT and break the start.
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": engine.termination_grace_seconds,
        "nodeSelector": {POOL_LABEL: engine.pool},
        "tolerations": [toleration(POOL_TAINT)],
        "initContainers": [_weights_ready(engine)],
        "containers": [_server(engine)],
        "volumes": [
            weight_cache.models_volume(),
            {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": SHARED_MEMORY}},
            {"name": "tmp", "emptyDir": {}},
            island.volume(),
        ],
    }


def _weights_ready(engine: Engine) -> Object:
    """Refuses to start on a node whose weights aren't verified, also when the startup taint was lifted by hand."""
    ready = f"{weight_cache.revision_folder(engine.revision)}/{weight_cache.READY_FILE}"
    resources = {"cpu": str(WAITING_CPUS), "memory": "1Gi"}
    return {
        "name": "weights-ready",
        "image": engine.image,
        "imagePullPolicy": engine.image_pull_policy,
        "command": ["/usr/bin/env", "python3", "-c", WAIT_FOR_WEIGHTS],
        "args": [ready, str(WEIGHTS_WAIT_SECONDS)],
        # Equal and whole, or the pod isn't Guaranteed.
        "resources": {"requests": resources, "limits": resources},
        "securityContext": _security(),
        "volumeMounts": [_models_mount()],
    }


def _server(engine: Engine) -> Object:
    resources = {"cpu": str(CPUS), "memory": MEMORY, GPU: str(engine.gpus)}
    environment = {
        "HF_HUB_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CACHE_ROOT": "/tmp/vllm",
        # Longer than Envoy keeps idle upstream connections, or both close at once and requests fail.
        "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "120",
        "HOME": "/tmp",
        # Utility brings nvidia-smi, which the island check asks.
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
    }
    return {
        "name": ENGINE,
        "image": engine.image,
        "imagePullPolicy": engine.image_pull_policy,
        "command": [*island.command(engine.gpus, pretended=engine.pretended), *PROGRAMS[engine.kind]],
        "args": engine_flags.serve_arguments(engine.flags),
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "ports": [{"name": "http", "containerPort": PORT, "protocol": "TCP"}],
        "resources": {"requests": resources, "limits": resources},
        "securityContext": _security(),
        # The port opens when the model is loaded and warm, so /health means ready.
        # Asked often: each second between up and asked is a second of an idle p5. Ten seconds of silence end readiness.
        "startupProbe": _health(period=2, timeout=5, failures=STARTUP_SECONDS // 2),
        "readinessProbe": _health(period=2, timeout=5, failures=5),
        # Slow answers under load aren't death: three minutes of silence are.
        "livenessProbe": _health(period=15, timeout=10, failures=12),
        "lifecycle": {"preStop": {"sleep": {"seconds": PRE_STOP_SECONDS}}},
        # The check writes its message; of a program that died of something else the log's end is shown.
        "terminationMessagePath": str(island_check.TERMINATION_LOG),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            _models_mount(),
            {"name": "shm", "mountPath": "/dev/shm"},
            {"name": "tmp", "mountPath": "/tmp"},
            island.mount(),
        ],
    }


def _health(*, period: int, timeout: int, failures: int) -> Object:
    return {
        "httpGet": {"path": "/health", "port": "http"},
        "periodSeconds": period,
        "timeoutSeconds": timeout,
        "failureThreshold": failures,
    }


def _security() -> dict[str, Any]:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def _models_mount() -> dict[str, Any]:
    return {"name": "models", "mountPath": weight_cache.MODELS_FOLDER, "readOnly": True}


def service(namespace: str) -> Object:
    """Service over the engines; Envoy reads its endpoints and balances by itself."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(ENGINE, namespace),
        "spec": {
            "type": "ClusterIP",
            "selector": selector(ENGINE),
            "ports": [{"name": "http", "port": PORT, "targetPort": "http", "protocol": "TCP"}],
        },
    }


def disruption_budget(namespace: str) -> Object:
    """At most one engine is gone by anyone's will. A sick one may always be evicted."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(ENGINE, namespace),
        "spec": {
            "maxUnavailable": 1,
            "selector": {"matchLabels": selector(ENGINE)},
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def network_policy(namespace: str, gateway_namespace: str, metrics_namespace: str) -> Object:
    """Only Envoy and Prometheus reach an engine; vLLM's own key guards only some of its paths.

    Engines need nothing outside: weights are on the node, so all egress is closed.
    """
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(ENGINE, namespace),
        "spec": {
            "podSelector": {"matchLabels": selector(ENGINE)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {
                    "from": [
                        {
                            "namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: gateway_namespace}},
                            "podSelector": {"matchLabels": {NAME_LABEL: "envoy"}},
                        },
                        {"namespaceSelector": {"matchLabels": {NAMESPACE_LABEL: metrics_namespace}}},
                    ],
                    "ports": [{"port": "http", "protocol": "TCP"}],
                }
            ],
            "egress": [],
        },
    }
