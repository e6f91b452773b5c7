"""The weight cache: a DaemonSet that fills the NVMe of each node and then lets engines in."""

from dataclasses import dataclass

from srvmod.infra.labels import (
    ENGINE,
    NAME_LABEL,
    POOL_LABEL,
    POOL_TAINT,
    WEIGHT_CACHE,
    WEIGHTS_COLD_TAINT,
    Object,
    labels,
    metadata,
    selector,
    toleration,
)

HOST_FOLDER = "/mnt/k8s-disks/0/models"
"""On the RAID0 that the node's set-up mounts; shared by all pods of the node, kept over pods' lives."""
MODELS_FOLDER = "/models"
READY_FILE = "READY"
STATUS_PORT = 8081
"""/healthz, /readyz and /metrics of the agent."""

SIMULATED_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "simulated", "AWS_SECRET_ACCESS_KEY": "simulated"}
"""Simulated AWS has no pod identity; it takes any key. Not a secret of anything."""


@dataclass(frozen=True)
class WeightCache:
    """Where weights come from. `required` are patterns of files that a revision must have: a node without them stays
    closed, since engines would end at once there. `aws_endpoint` only for simulated AWS."""

    namespace: str
    pool: str
    image: str
    image_pull_policy: str
    bucket: str
    prefix: str
    revision: str
    region: str
    required: tuple[str, ...]
    aws_endpoint: str | None = None


def models_volume() -> Object:
    """The folder of all revisions on the node's NVMe."""
    return {"name": "models", "hostPath": {"path": HOST_FOLDER, "type": "DirectoryOrCreate"}}


def revision_folder(revision: str) -> str:
    """Where a revision lies in a container."""
    return f"{MODELS_FOLDER}/{revision}"


def service_account(cache: WeightCache) -> Object:
    """The identity that may read the bucket (by pod identity), lift the startup taint and set deletion costs."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(WEIGHT_CACHE, cache.namespace),
        "automountServiceAccountToken": False,
    }


def cluster_role() -> Object:
    """Read and patch Nodes: taints are part of the Node's spec, which RBAC can't split further."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata(WEIGHT_CACHE),
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}],
    }


def cluster_role_binding(cache: WeightCache) -> Object:
    """Gives the role to the cache's service account."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": metadata(WEIGHT_CACHE),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": WEIGHT_CACHE},
        "subjects": [{"kind": "ServiceAccount", "name": WEIGHT_CACHE, "namespace": cache.namespace}],
    }


def role(cache: WeightCache) -> Object:
    """List the engines, write their deletion cost (annotations are part of the pod, which RBAC can't split) and tell
    of those that refused to start."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(WEIGHT_CACHE, cache.namespace),
        "rules": [
            {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "patch"]},
            # What the island check of an engine said; the engine itself has no way to the API server.
            {"apiGroups": [""], "resources": ["events"], "verbs": ["create"]},
        ],
    }


def role_binding(cache: WeightCache) -> Object:
    """Gives the role to the cache's service account."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(WEIGHT_CACHE, cache.namespace),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": WEIGHT_CACHE},
        "subjects": [{"kind": "ServiceAccount", "name": WEIGHT_CACHE, "namespace": cache.namespace}],
    }


def daemon_set(cache: WeightCache) -> Object:
    """DaemonSet on the pool's nodes, also before anything else may run there.

    No CPU limit, so that the static CPU manager leaves it in the shared pool: the whole machine while it copies and
    hashes, the few CPUs beside the engines afterwards. The API token is mounted here alone, the account's default
    is off.
    """
    environment = {
        "BUCKET": cache.bucket,
        "PREFIX": cache.prefix,
        "REVISION": cache.revision,
        "REQUIRED": " ".join(cache.required),
        "MODELS_DIR": MODELS_FOLDER,
        "STARTUP_TAINT": WEIGHTS_COLD_TAINT,
        "POD_NAMESPACE": cache.namespace,
        "ENGINE_SELECTOR": f"{NAME_LABEL}={ENGINE}",
        "PORT": str(STATUS_PORT),
        "AWS_REGION": cache.region,
    }
    if cache.aws_endpoint:
        environment |= {"AWS_ENDPOINT_URL": cache.aws_endpoint, **SIMULATED_CREDENTIALS}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(WEIGHT_CACHE, cache.namespace),
        "spec": {
            "selector": {"matchLabels": selector(WEIGHT_CACHE)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": labels(WEIGHT_CACHE)},
                "spec": {
                    "serviceAccountName": WEIGHT_CACHE,
                    "automountServiceAccountToken": True,
                    "enableServiceLinks": False,
                    "priorityClassName": "system-node-critical",
                    "terminationGracePeriodSeconds": 30,
                    "nodeSelector": {POOL_LABEL: cache.pool},
                    "tolerations": [toleration(POOL_TAINT), toleration(WEIGHTS_COLD_TAINT)],
                    "containers": [
                        {
                            "name": WEIGHT_CACHE,
                            "image": cache.image,
                            "imagePullPolicy": cache.image_pull_policy,
                            "env": [
                                *({"name": key, "value": value} for key, value in environment.items()),
                                {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                            ],
                            "ports": [{"name": "status", "containerPort": STATUS_PORT, "protocol": "TCP"}],
                            # Ready is "this node's weights are verified and its taint is gone", which a p5 reaches
                            # minutes after its start; a rollout of the cache waits for it node by node.
                            "readinessProbe": {
                                "httpGet": {"path": "/readyz", "port": "status"},
                                "periodSeconds": 5,
                            },
                            "livenessProbe": {
                                "httpGet": {"path": "/healthz", "port": "status"},
                                "initialDelaySeconds": 10,
                                "periodSeconds": 20,
                                "timeoutSeconds": 10,
                                "failureThreshold": 6,
                            },
                            "resources": {
                                "requests": {"cpu": "2", "memory": "4Gi"},
                                "limits": {"memory": "16Gi"},
                            },
                            "securityContext": {
                                "allowPrivilegeEscalation": False,
                                "readOnlyRootFilesystem": True,
                                "capabilities": {"drop": ["ALL"]},
                                "seccompProfile": {"type": "RuntimeDefault"},
                            },
                            "volumeMounts": [
                                {"name": "models", "mountPath": MODELS_FOLDER},
                                {"name": "tmp", "mountPath": "/tmp"},
                            ],
                        }
                    ],
                    "volumes": [models_volume(), {"name": "tmp", "emptyDir": {}}],
                },
            },
        },
    }
