"""The NVIDIA device plugin: a small DaemonSet of our own instead of its chart, so that gates see it."""

from srvmod.infra.labels import (
    POOL_LABEL,
    POOL_TAINT,
    WEIGHTS_COLD_TAINT,
    Object,
    labels,
    metadata,
    selector,
    toleration,
)

NAME = "nvidia-device-plugin"
SOCKETS = "/var/lib/kubelet/device-plugins"


def device_plugin(pool: str, image: str) -> Object:
    """DaemonSet of the plugin on the nodes of `pool`.

    It must run before the weights are there, since Karpenter waits for the GPUs that it has promised.
    `PASS_DEVICE_SPECS` gives containers their devices through the kubelet, as the static CPU manager needs.
    """
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata(NAME, "kube-system"),
        "spec": {
            "selector": {"matchLabels": selector(NAME)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": labels(NAME)},
                "spec": {
                    "automountServiceAccountToken": False,
                    "enableServiceLinks": False,
                    "priorityClassName": "system-node-critical",
                    "nodeSelector": {POOL_LABEL: pool},
                    "tolerations": [toleration(POOL_TAINT), toleration(WEIGHTS_COLD_TAINT)],
                    "containers": [
                        {
                            "name": NAME,
                            "image": image,
                            "imagePullPolicy": "IfNotPresent",
                            "env": [
                                {"name": "FAIL_ON_INIT_ERROR", "value": "true"},
                                {"name": "MIG_STRATEGY", "value": "none"},
                                {"name": "PASS_DEVICE_SPECS", "value": "true"},
                                {"name": "DEVICE_ID_STRATEGY", "value": "uuid"},
                                {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
                                {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "compute,utility"},
                            ],
                            "resources": {
                                "requests": {"cpu": "50m", "memory": "64Mi"},
                                "limits": {"memory": "256Mi"},
                            },
                            "securityContext": {"privileged": True},
                            "volumeMounts": [{"name": "device-plugins", "mountPath": SOCKETS}],
                        }
                    ],
                    "volumes": [{"name": "device-plugins", "hostPath": {"path": SOCKETS, "type": "Directory"}}],
                },
            },
        },
    }
