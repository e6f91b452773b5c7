"""A pool of p5.48xlarge: NodePool, EC2NodeClass and the NodeConfig in its user data."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import yaml

from srvmod.contract import P5_48XLARGE, InstanceType
from srvmod.infra.labels import (
    GPU,
    GPU_PRESENT_LABEL,
    POOL_LABEL,
    POOL_TAINT,
    WEIGHTS_COLD_TAINT,
    Object,
    metadata,
    taint,
)

MAX_PODS = 60
ROOT_VOLUME_GIB = 100
RESERVED_CPUS = 4
"""Kube and system reservations together, taken from the lowest CPUs (NUMA node 0) by the static CPU manager."""


@dataclass(frozen=True)
class Reservation:
    """A capacity reservation or capacity block: by id, or by tags (all must match)."""

    id: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    def term(self) -> dict[str, Any]:
        """As an EC2NodeClass selector term."""
        return {"id": self.id} if self.id else {"tags": dict(self.tags)}


@dataclass(frozen=True)
class Pool:
    """A pool as its two objects describe it.

    `instance_profile` takes the place of `node_role` where Karpenter can't reach IAM to make one.

    `nodes` is the most nodes it may have; `zones` empty means any zone that has a discovered subnet;
    `consolidate_after` and `termination_grace` are Kubernetes durations; `tags` go onto every instance.
    """

    name: str
    nodes: int
    node_role: str
    discovery: Mapping[str, str]
    ami_alias: str
    capacity_types: Sequence[str]
    zones: Sequence[str] = ()
    reservations: Sequence[Reservation] = ()
    consolidate_after: str = "30m"
    termination_grace: str = "30m"
    root_volume_gib: int = ROOT_VOLUME_GIB
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    instance_profile: str | None = None
    instance: InstanceType = P5_48XLARGE


def node_pool(pool: Pool) -> Object:
    """NodePool: only p5.48xlarge, only pods that ask for it, never moved while it holds an engine.

    Nodes go when they are empty and only then; drift waits for a person, expiration is off: each would cut every
    stream of two engines. `terminationGracePeriod` bounds a drain that someone asked for.
    """
    requirements = [
        # The family p5 also holds p5.4xlarge with one GPU, so the type itself is named.
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [pool.instance.name]},
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": list(pool.capacity_types)},
        {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
    ]
    if pool.zones:
        requirements.append({"key": "topology.kubernetes.io/zone", "operator": "In", "values": list(pool.zones)})
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": metadata(pool.name),
        "spec": {
            "limits": {GPU: str(pool.nodes * pool.instance.gpus)},
            "disruption": {
                "consolidationPolicy": "WhenEmpty",
                "consolidateAfter": pool.consolidate_after,
                "budgets": [
                    {"nodes": "0", "reasons": ["Underutilized", "Drifted"]},
                    {"nodes": "1", "reasons": ["Empty"]},
                ],
            },
            "template": {
                "metadata": {"labels": {POOL_LABEL: pool.name, GPU_PRESENT_LABEL: "true"}},
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.k8s.aws",
                        "kind": "EC2NodeClass",
                        "name": pool.name,
                    },
                    "expireAfter": "Never",
                    "terminationGracePeriod": pool.termination_grace,
                    "taints": [taint(POOL_TAINT)],
                    "startupTaints": [taint(WEIGHTS_COLD_TAINT)],
                    "requirements": requirements,
                },
            },
        },
    }


def node_class(pool: Pool) -> Object:
    """EC2NodeClass: pinned AMI, subnets and security group by the discovery tag, NVMe as one RAID0."""
    selector = [{"tags": dict(pool.discovery)}]
    reservations = (
        {"capacityReservationSelectorTerms": [reservation.term() for reservation in pool.reservations]}
        if pool.reservations
        else {}
    )
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": metadata(pool.name),
        "spec": {
            **({"instanceProfile": pool.instance_profile} if pool.instance_profile else {"role": pool.node_role}),
            # An alias has to be the only term; it picks the NVIDIA variant for GPU instance types by itself.
            "amiSelectorTerms": [{"alias": pool.ami_alias}],
            "subnetSelectorTerms": selector,
            "securityGroupSelectorTerms": selector,
            **reservations,
            "instanceStorePolicy": "RAID0",
            "blockDeviceMappings": [
                {
                    "deviceName": "/dev/xvda",
                    "ebs": {
                        "volumeSize": f"{pool.root_volume_gib}Gi",
                        "volumeType": "gp3",
                        "iops": 6000,
                        "throughput": 500,
                        "encrypted": True,
                        "deleteOnTermination": True,
                    },
                }
            ],
            "metadataOptions": {
                "httpEndpoint": "enabled",
                "httpTokens": "required",
                "httpPutResponseHopLimit": 1,
            },
            "kubelet": {
                "maxPods": MAX_PODS,
                "kubeReserved": {"cpu": "2", "memory": "3Gi", "ephemeral-storage": "5Gi"},
                "systemReserved": {"cpu": "2", "memory": "2Gi"},
                "evictionHard": {
                    "memory.available": "1Gi",
                    "nodefs.available": "10%",
                    "nodefs.inodesFree": "5%",
                },
            },
            "userData": user_data(),
            "tags": dict(pool.tags),
        },
    }


def node_config() -> Object:
    """NodeConfig that keeps a pod's GPUs and CPUs on one NUMA node.

    In user data because `EC2NodeClass.spec.kubelet` knows none of these fields before Karpenter 1.15; Karpenter
    appends its own NodeConfig last, which wins for the keys it sets and leaves these alone. `reservedSystemCPUs`
    must stay out: nodeadm sets reserved cgroups and the kubelet refuses both (amazon-eks-ami#2794).
    """
    return {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "kubelet": {
                "config": {
                    "cpuManagerPolicy": "static",
                    "cpuManagerPolicyOptions": {"full-pcpus-only": "true"},
                    "topologyManagerPolicy": "single-numa-node",
                    "topologyManagerScope": "pod",
                }
            },
            "featureGates": {"FastImagePull": True},
        },
    }


def user_data() -> str:
    """The NodeConfig as the instance reads it."""
    return yaml.safe_dump(node_config(), sort_keys=False)
