"""Facts of the EC2 instance types that commonly carry controllers, and what EKS leaves pods of them."""

from dataclasses import dataclass

GIB_PER_VCPU: dict[str, int] = {
    **dict.fromkeys(("c5", "c6a", "c6i", "c7a", "c7i"), 2),
    **dict.fromkeys(("m5", "m5a", "m6a", "m6i", "m7a", "m7i", "m7i-flex"), 4),
    **dict.fromkeys(("r5", "r6a", "r6i", "r7a", "r7i"), 8),
}
"""Families of x86 without GPUs, as `ec2 describe-instance-types` has them."""
VCPUS: dict[str, int] = {"large": 2, "xlarge": 4, "2xlarge": 8, "4xlarge": 16}
MOST_PODS: dict[str, int] = {"large": 29, "xlarge": 58, "2xlarge": 58, "4xlarge": 234}
"""Pods that vpc-cni has addresses for without prefixes."""
RESERVED_CPU_MILLIS = (60, 10, 5, 5)
"""Of the first four vCPUs; 2.5 of each further one
(nodeadm's kubelet configuration, github.com/awslabs/amazon-eks-ami)."""
EVICTION_MIB = 100
KERNEL_SHARE = 0.05
"""Of the memory, what kernel and firmware keep: about 0.6 GiB of 16."""


@dataclass(frozen=True)
class SystemNode:
    """What pods may use of a node: CPU in thousandths, memory in MiB, rounded down."""

    cpu_millis: int
    memory_mib: int


def system_node(instance_type: str) -> SystemNode | None:
    """What pods may use of a node of the type; None for types that aren't in these tables."""
    family, _, size = instance_type.partition(".")
    vcpus, gib = VCPUS.get(size), GIB_PER_VCPU.get(family)
    if vcpus is None or gib is None:
        return None
    reserved = sum(RESERVED_CPU_MILLIS[:vcpus]) + 2.5 * max(0, vcpus - len(RESERVED_CPU_MILLIS))
    memory = vcpus * gib * 1024 * (1 - KERNEL_SHARE) - 255 - 11 * MOST_PODS[size] - EVICTION_MIB
    return SystemNode(int(vcpus * 1000 - reserved), int(memory))
