"""Hardware facts: GPUs and the one instance type this product runs engines on (clause MC-HW-01)."""

from dataclasses import dataclass, replace

from srvmod.contract.units import GB, GIB, MIB, Bytes, BytesPerSecond, Flops


@dataclass(frozen=True)
class Gpu:
    """One GPU as its vendor describes it; peaks are dense (no sparsity).

    Source: NVIDIA data sheets of H100 SXM5, H200 SXM and B200 (HGX); `usable` is what CUDA reports as total memory.
    """

    name: str
    memory_mib: int
    usable: Bytes
    memory_bandwidth: BytesPerSecond
    fp8: Flops
    bf16: Flops
    nvlink_gb_per_second: int
    """Sum of both directions; one direction is half of it."""
    nvlinks: int
    """Links to the NVSwitches, which `nvidia-smi topo -m` shows between each two GPUs (NV18) while all are up."""
    fp4: Flops | None = None
    """None where the GPU has no FP4 arithmetic."""


H100 = Gpu(
    name="H100",
    memory_mib=81_920,
    usable=Bytes(79.1 * GIB),
    memory_bandwidth=BytesPerSecond(3.35e12),
    fp8=Flops(1979e12),
    bf16=Flops(989e12),
    nvlink_gb_per_second=900,
    nvlinks=18,
)
H200 = Gpu(
    name="H200",
    memory_mib=143_771,
    usable=Bytes(139.8 * GIB),
    memory_bandwidth=BytesPerSecond(4.8e12),
    fp8=Flops(1979e12),
    bf16=Flops(989e12),
    nvlink_gb_per_second=900,
    nvlinks=18,
)
B200 = Gpu(
    name="B200",
    memory_mib=183_359,
    usable=Bytes(178.4 * GIB),
    memory_bandwidth=BytesPerSecond(8.0e12),
    fp8=Flops(4500e12),
    bf16=Flops(2250e12),
    nvlink_gb_per_second=1_800,
    nvlinks=18,
    fp4=Flops(9000e12),
)
GPUS: dict[str, Gpu] = {gpu.name: gpu for gpu in (H100, H200, B200)}
"""Every GPU that the capacity room can size, by name."""


@dataclass(frozen=True)
class Island:
    """The GPUs of one NUMA node: what one engine gets."""

    numa_node: int
    gpus: tuple[int, ...]


@dataclass(frozen=True)
class InstanceType:
    """An EC2 instance type as `ec2 describe-instance-types` and Karpenter's labels describe it."""

    name: str
    gpu: Gpu
    islands: tuple[Island, ...]
    vcpus: int
    threads_per_core: int
    """Hyper-threads of a core (`VCpuInfo.DefaultThreadsPerCore`). A kubelet with the CPU manager's `full-pcpus-only`
    gives out whole cores: it refuses a Guaranteed pod with SMTAlignmentError where the whole CPUs of any container,
    init containers too, aren't a multiple (pkg/kubelet/cm/cpumanager/policy_static.go of Kubernetes 1.36)."""
    memory_mib: int
    nvme_gb: int
    """All instance-store disks together, 1e9 bytes."""
    nvme_disks: int
    efa_interfaces: int
    allocatable_cpu_millis: int
    """CPU left for pods with Karpenter's default reservations, in thousandths of a CPU."""
    allocatable_memory_mib: int
    quota_code: str
    """Service quota that counts its vCPUs ("Running On-Demand P instances")."""
    spot_quota_code: str

    @property
    def gpus(self) -> int:
        """GPUs of the whole instance."""
        return sum(len(island.gpus) for island in self.islands)

    @property
    def nvme_bytes(self) -> int:
        """Instance-store size in bytes."""
        return self.nvme_gb * GB

    @property
    def memory_bytes(self) -> int:
        """Host memory in bytes."""
        return self.memory_mib * MIB

    @property
    def vcpus_per_island(self) -> int:
        """CPUs (hyper-threads) of one NUMA node."""
        return self.vcpus // len(self.islands)


P5_48XLARGE = InstanceType(
    name="p5.48xlarge",
    gpu=H100,
    islands=(Island(numa_node=0, gpus=(0, 1, 2, 3)), Island(numa_node=1, gpus=(4, 5, 6, 7))),
    vcpus=192,
    threads_per_core=2,
    memory_mib=2_097_152,
    nvme_gb=30_400,
    nvme_disks=8,
    efa_interfaces=32,
    allocatable_cpu_millis=191_450,
    allocatable_memory_mib=1_938_410,
    quota_code="L-417A185B",
    spot_quota_code="L-7212CCBC",
)

P5EN_48XLARGE = replace(P5_48XLARGE, name="p5en.48xlarge", gpu=H200, efa_interfaces=16)
P6_B200_48XLARGE = replace(P5_48XLARGE, name="p6-b200.48xlarge", gpu=B200, efa_interfaces=8)
"""Like P5EN_48XLARGE for comparison only: clause MC-HW-01 names p5.48xlarge, and engines run on nothing else. What a
pod gets of CPUs and memory is taken over from p5, whose vCPUs, memory and disks they share."""

INSTANCE_TYPES: dict[str, InstanceType] = {
    instance.name: instance for instance in (P5_48XLARGE, P5EN_48XLARGE, P6_B200_48XLARGE)
}
"""Instance types that the capacity room can size, by name."""
