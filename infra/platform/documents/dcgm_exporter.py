"""dcgm-exporter: GPU and NVLink counters of the pool's nodes for Prometheus, as a small DaemonSet of our own.

It has no DCGM engine of its own but asks the one that the EKS node monitoring agent runs on each GPU node (dcgm-server,
host port 5555): two engines on a node contend for the GPUs' counters, and the agent then reports healthy hardware as
broken (github.com/aws/eks-node-monitoring-agent/issues/256, github.com/aws/containers-roadmap/issues/2763). So it
needs neither the capability SYS_ADMIN nor privileges.
"""

import hashlib

from srvmod.infra.labels import (
    POOL_LABEL,
    POOL_TAINT,
    PREFIX,
    WEIGHTS_COLD_TAINT,
    Object,
    labels,
    metadata,
    selector,
    toleration,
)

NAME = "dcgm-exporter"
NAMESPACE = "kube-system"
PORT = 9400
ENGINE_PORT = 5555
"""Host port of the node monitoring agent's DCGM engine."""
FOLDER = "/etc/srvmod"
COUNTERS_FILE = "counters.csv"
POD_RESOURCES = "/var/lib/kubelet/pod-resources"
"""Where the kubelet says which pod has which GPU."""
SCRAPE_SECONDS = 15

COUNTERS: tuple[tuple[str, str, str], ...] = (
    ("DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (percent)"),
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock (MHz)"),
    ("DCGM_FI_DEV_FB_USED", "gauge", "GPU memory used (MiB)"),
    ("DCGM_FI_DEV_FB_FREE", "gauge", "GPU memory free (MiB)"),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (C)"),
    ("DCGM_FI_DEV_MEMORY_TEMP", "gauge", "GPU memory temperature (C)"),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (W)"),
    ("DCGM_FI_DEV_POWER_VIOLATION", "counter", "Time throttled for power (ns)"),
    ("DCGM_FI_DEV_THERMAL_VIOLATION", "counter", "Time throttled for heat (ns)"),
    ("DCGM_FI_DEV_XID_ERRORS", "gauge", "Last XID error; stays until the next one"),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Uncorrectable ECC errors since the driver was loaded"),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Memory rows remapped for uncorrectable errors"),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether remapping of memory rows has failed"),
    ("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "counter", "PCIe retries"),
    ("DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "counter", "NVLink traffic of all links"),
    # G-1 of the specification. The fields *_ERROR_COUNT_TOTAL read N/A on Hopper (github.com/NVIDIA/DCGM/issues/173).
    ("DCGM_FI_DEV_NVLINK_ERROR_DL_CRC", "counter", "NVLink CRC errors"),
    ("DCGM_FI_DEV_NVLINK_ERROR_DL_RECOVERY", "counter", "NVLink recoveries"),
    ("DCGM_FI_DEV_NVLINK_ERROR_DL_REPLAY", "counter", "NVLink replays"),
)
"""Field of DCGM 4.5, Prometheus type, help. Profiling fields (PROF) are left out: only one reader may have them."""

START = f'ldconfig && exec /usr/bin/dcgm-exporter -r "$HOST_IP:{ENGINE_PORT}" -f {FOLDER}/{COUNTERS_FILE}'
"""The image has no linker cache, without which its program ends with nothing but "exit status 1"
(github.com/NVIDIA/dcgm-exporter/issues/612)."""


def counters_csv() -> str:
    """The counters as dcgm-exporter reads them."""
    return "".join(f"{field}, {kind}, {text}\n" for field, kind, text in COUNTERS)


def config_map() -> Object:
    """ConfigMap of the counters."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(NAME, NAMESPACE),
        "data": {COUNTERS_FILE: counters_csv()},
    }


def daemon_set(pool: str, image: str, *, annotated: bool) -> Object:
    """DaemonSet on the nodes of `pool`, also before their weights are there: a node that never gets ready is one
    whose counters are wanted. `annotated` adds what a Prometheus without operator finds pods by."""
    annotations = {f"{PREFIX}counters": hashlib.sha256(counters_csv().encode()).hexdigest()[:16]}
    if annotated:
        annotations |= {"prometheus.io/scrape": "true", "prometheus.io/port": str(PORT)}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(NAME, NAMESPACE),
        "spec": {
            "selector": {"matchLabels": selector(NAME)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": labels(NAME), "annotations": annotations},
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "priorityClassName": "system-node-critical",
                    "nodeSelector": {POOL_LABEL: pool},
                    "tolerations": [toleration(POOL_TAINT), toleration(WEIGHTS_COLD_TAINT)],
                    "containers": [_container(image)],
                    "volumes": [
                        {"name": "counters", "configMap": {"name": NAME}},
                        {"name": "pod-resources", "hostPath": {"path": POD_RESOURCES, "type": "Directory"}},
                    ],
                },
            },
        },
    }


def _container(image: str) -> Object:
    health = {"httpGet": {"path": "/health", "port": "metrics"}}
    return {
        "name": NAME,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/bash", "-c", START],
        "env": [
            {"name": "DCGM_EXPORTER_KUBERNETES", "value": "true"},
            {"name": "DCGM_EXPORTER_LISTEN", "value": f":{PORT}"},
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        ],
        "ports": [{"name": "metrics", "containerPort": PORT, "protocol": "TCP"}],
        "readinessProbe": {**health, "periodSeconds": 15, "timeoutSeconds": 5},
        "livenessProbe": {**health, "initialDelaySeconds": 45, "periodSeconds": 15, "timeoutSeconds": 5},
        # No CPU limit, and requests below it: the static CPU manager leaves the pod in the shared CPUs.
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": {
            # The kubelet's socket and the linker cache belong to root.
            "runAsUser": 0,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            {"name": "counters", "mountPath": FOLDER, "readOnly": True},
            {"name": "pod-resources", "mountPath": POD_RESOURCES, "readOnly": True},
        ],
    }


def pod_monitor() -> Object:
    """PodMonitor: the Prometheus operator's way to find the DaemonSet's pods."""
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": metadata(NAME, NAMESPACE),
        "spec": {
            "selector": {"matchLabels": selector(NAME)},
            "podMetricsEndpoints": [
                {
                    "port": "metrics",
                    "path": "/metrics",
                    "interval": f"{SCRAPE_SECONDS}s",
                    # Its labels `namespace` and `pod` are those of the engine that has the GPU.
                    "honorLabels": True,
                }
            ],
        },
    }
