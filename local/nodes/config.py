"""Configuration files of a node: containerd, CNI, kubelet."""

from __future__ import annotations

import json
import resource
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srvmod.local.facts import BRIDGE, BRIDGE_ADDRESS
from srvmod.local.nodes import without_seccomp
from srvmod.local.nodes.paths import CONTAINERD_SOCKET, KUBELET_ROOT, NETWORK, Slot

PAUSE_IMAGE = "docker.io/srvmod/pause:local"
KUBELET_PORT = 10250
KUBELET_HEALTH_PORT = 10248
MAX_OPEN_FILES = 1_000_000  # the kubelet's default
CLUSTER_DOMAIN = "cluster.local"

# A real kubelet's settings that can't work on pretended CPUs and memory: cpusets would name CPUs that the machine
# doesn't have. They are left out here, and only here; `honoured` names what it dropped.
LEFT_OUT = (
    "cpuManagerPolicy",
    "cpuManagerPolicyOptions",
    "memoryManagerPolicy",
    "reservedMemory",
    "reservedSystemCPUs",
)
# What this machine decides and a node's user data can't.
OURS = frozenset(
    {
        "apiVersion",
        "kind",
        "address",
        "port",
        "readOnlyPort",
        "healthzPort",
        "healthzBindAddress",
        "authentication",
        "authorization",
        "tlsCertFile",
        "tlsPrivateKeyFile",
        "cgroupDriver",
        "cgroupRoot",
        "clusterDNS",
        "clusterDomain",
        "containerRuntimeEndpoint",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "kubeReservedCgroup",
        "systemReservedCgroup",
        "enforceNodeAllocatable",
        "resolvConf",
        "volumePluginDir",
    }
)

_CONTAINERD = """\
version = 3
root = "/var/lib/containerd"
state = "/run/containerd"
oom_score = 0
disabled_plugins = [
  "io.containerd.internal.v1.opt", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.erofs", "io.containerd.differ.v1.erofs",
  "io.containerd.snapshotter.v1.zfs", "io.containerd.nri.v1.nri", "io.containerd.monitor.container.v1.restart",
]
[grpc]
  address = "{socket}"
[ttrpc]
  address = "{socket}.ttrpc"
[plugins."io.containerd.cri.v1.images"]
  snapshotter = "overlayfs"
  [plugins."io.containerd.cri.v1.images".pinned_images]
    sandbox = "{pause}"
[plugins."io.containerd.cri.v1.runtime"]
  # without CAP_SYS_RESOURCE runc can't lower a container's oom_score_adj below that of containerd
  restrict_oom_score_adj = true
  disable_apparmor = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.cri.v1.runtime".cni]
    bin_dirs = ["{cni_bin}"]
    conf_dir = "{cni_conf}"
  [plugins."io.containerd.cri.v1.runtime".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
        BinaryName = "{runc}"
        SystemdCgroup = false
"""


def containerd_toml(slot: Slot, runc: Path, cni_bin: Path) -> str:
    """containerd's configuration, with paths as seen inside the node's mount namespace."""
    return _CONTAINERD.format(
        socket=CONTAINERD_SOCKET, pause=PAUSE_IMAGE, cni_bin=cni_bin, cni_conf=slot.config / "cni", runc=runc
    )


def runc_script(runc: Path) -> str:
    """What containerd calls in place of a runc without seccomp; see `without_seccomp`."""
    python, helper = shlex.quote(sys.executable), shlex.quote(without_seccomp.__file__)
    program = shlex.quote(str(runc))
    return (
        "#!/bin/sh\n"
        f'for word; do [ "$word" = create ] && exec {python} -I -S {helper} {program} "$@"; done\n'
        f'exec {program} "$@"\n'
    )


def cni_conflist(slot: Slot) -> str:
    """Pods hang on the stack's one bridge; each slot gives out its own range of the bridge's network."""
    first, last = slot.pod_range
    return json.dumps(
        {
            "cniVersion": "1.0.0",
            "name": "srvmod",
            "plugins": [
                {
                    "type": "bridge",
                    "bridge": BRIDGE,
                    "isGateway": False,
                    "ipMasq": False,
                    "hairpinMode": True,
                    "ipam": {
                        "type": "host-local",
                        "dataDir": "/var/lib/cni/networks",
                        "ranges": [
                            [
                                {
                                    "subnet": NETWORK,
                                    "rangeStart": first,
                                    "rangeEnd": last,
                                    "gateway": BRIDGE_ADDRESS,
                                }
                            ]
                        ],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                }
            ],
        },
        indent=1,
    )


def honoured(user: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Splits the kubelet settings of a node's user data: (those that are used, those that are left out).

    Left out are `LEFT_OUT` and what this machine decides (`OURS`).
    """
    dropped = tuple(sorted(key for key in user if key in LEFT_OUT or key in OURS))
    return {key: value for key, value in user.items() if key not in dropped}, dropped


def kubelet_configuration(
    slot: Slot, ca: Path, certificate: Path, key: Path, user: Mapping[str, Any]
) -> dict[str, Any]:
    """The KubeletConfiguration of a slot. `user` is the NodeConfig's `kubelet.config`, already `honoured`."""
    return {
        **user,
        # the cluster must see the GPUs within seconds; 10 s is the kubelet's default
        "nodeStatusUpdateFrequency": "2s",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": slot.address,
        "port": KUBELET_PORT,
        "readOnlyPort": 0,
        "healthzPort": KUBELET_HEALTH_PORT,
        "healthzBindAddress": slot.address,
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(ca)},
        },
        "authorization": {"mode": "Webhook"},
        "tlsCertFile": str(certificate),
        "tlsPrivateKeyFile": str(key),
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": slot.cgroup,
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": [],
        "failCgroupV1": False,
        "failSwapOn": False,
        # without CAP_SYS_RESOURCE a kubelet can't change these for itself, and would complain for ever
        "maxOpenFiles": min(MAX_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),
        "oomScoreAdj": int(Path("/proc/self/oom_score_adj").read_text()),
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        # images are imported once and can't be pulled again: never collect them
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        # the machine's disk isn't a p5's: thresholds in percent would evict on an ordinary, half-full one
        "evictionHard": {
            "memory.available": user.get("evictionHard", {}).get("memory.available", "100Mi"),
            "nodefs.available": "500Mi",
            "imagefs.available": "500Mi",
        },
        "clusterDNS": [BRIDGE_ADDRESS],
        "clusterDomain": CLUSTER_DOMAIN,
        "resolvConf": str(slot.config / "resolv.conf"),
        "volumePluginDir": str(KUBELET_ROOT / "volume-plugins"),
        "podLogsDir": "/var/log/pods",
        "registerNode": True,
        "shutdownGracePeriod": "0s",
        "shutdownGracePeriodCriticalPods": "0s",
    }
