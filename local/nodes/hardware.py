"""The files that make kubelet and engine believe they run on a p5.48xlarge.

Two NUMA nodes of 48 cores with 2 threads each, 2 TiB, 8 GPUs of which 0-3 hang on NUMA node 0 and 4-7 on node 1
(clause MC-HW-01). PCI addresses are those that AWS's own p5 topology files name; CPU lists, NUMA nodes and NVLinks are
as `nvidia-smi topo -m` shows them on a machine of this shape (github.com/HazyResearch/ThunderKittens/issues/167).
Nothing here is measured.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from srvmod.contract import P5_48XLARGE
from srvmod.local.nodes import pretended_nvidia_smi

CPUS = 192
NUMA_NODES = 2
CORES_PER_NODE = 48
MEMORY_KIB = 2 * 1024**3  # 2 TiB
CPU_LISTS = ("0-47,96-143", "48-95,144-191")
# Index of the GPU -> PCI address.
GPU_ADDRESSES = (
    "0000:53:00.0",
    "0000:64:00.0",
    "0000:75:00.0",
    "0000:86:00.0",
    "0000:97:00.0",
    "0000:a8:00.0",
    "0000:b9:00.0",
    "0000:ca:00.0",
)
NVIDIA_VENDOR = "0x10de"
H100_SXM_DEVICE = "0x2330"
CLASS_3D_CONTROLLER = "0x030200"
# What the kernel offers to be tuned and a kubelet sets on start. Those settings are the whole machine's, so a
# pretended node gets files of its own in their place: path below /proc/sys -> value before the kubelet came.
KERNEL_SETTINGS = {
    "vm/overcommit_memory": 0,
    "vm/panic_on_oom": 0,
    "kernel/panic": 0,
    "kernel/panic_on_oops": 0,
    "kernel/keys/root_maxkeys": 1000000,
    "kernel/keys/root_maxbytes": 25000000,
}
_DONE = "complete"


def _files() -> dict[str, object]:
    """Path below the hardware folder -> content."""
    files: dict[str, object] = {}
    node_kib = MEMORY_KIB // NUMA_NODES
    for cpu in range(CPUS):
        core, package = cpu % (CORES_PER_NODE * NUMA_NODES) % CORES_PER_NODE, cpu % 96 // CORES_PER_NODE
        topology = {
            "core_id": core,
            "physical_package_id": package,
            "die_id": 0,
            "cluster_id": -1,
            "book_id": 0,
            "drawer_id": 0,
        }
        for base in (f"cpu/cpu{cpu}", f"node/node{package}/cpu{cpu}"):
            files |= {f"{base}/topology/{name}": value for name, value in topology.items()}
            files[f"{base}/online"] = 1
            files[f"{base}/cache/"] = ""
    for node in range(NUMA_NODES):
        base = f"node/node{node}"
        files[f"{base}/cpulist"] = CPU_LISTS[node]
        files[f"{base}/distance"] = "10 32" if node == 0 else "32 10"
        files[f"{base}/meminfo"] = (
            f"Node {node} MemTotal:       {node_kib} kB\nNode {node} MemFree:        {node_kib - 10_000_000} kB"
        )
        files[f"{base}/hugepages/hugepages-2048kB/nr_hugepages"] = 0
    files |= {f"node/{name}": f"0-{NUMA_NODES - 1}" for name in ("online", "has_cpu", "possible")}
    files |= {f"cpu/{name}": f"0-{CPUS - 1}" for name in ("online", "possible", "present")}
    files["meminfo"] = "\n".join(
        f"{name + ':':<16}{kib} kB"
        for name, kib in {
            "MemTotal": MEMORY_KIB,
            "MemFree": MEMORY_KIB - 40_000_000,
            "MemAvailable": MEMORY_KIB - 40_000_000,
            "Buffers": 0,
            "Cached": 0,
            "SwapTotal": 0,
            "SwapFree": 0,
        }.items()
    )
    files["cpuinfo"] = "\n".join(
        f"processor\t: {cpu}\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC 7R13 Processor\ncpu MHz\t\t: 3600.000\n"
        f"physical id\t: {cpu % 96 // CORES_PER_NODE}\ncore id\t\t: {cpu % 96 % CORES_PER_NODE}\n"
        for cpu in range(CPUS)
    )
    for index, address in enumerate(GPU_ADDRESSES):
        island = index // (len(GPU_ADDRESSES) // NUMA_NODES)
        device = f"gpu/sys/bus/pci/devices/{address}"
        files |= {
            f"{device}/numa_node": island,
            f"{device}/local_cpulist": CPU_LISTS[island],
            f"{device}/vendor": NVIDIA_VENDOR,
            f"{device}/device": H100_SXM_DEVICE,
            f"{device}/class": CLASS_3D_CONTROLLER,
            f"gpu/proc/driver/nvidia/gpus/{address}/information": (
                f"Model: \t\t NVIDIA H100 80GB HBM3 (pretended)\nGPU UUID: \t GPU-{index}\nDevice Minor: \t {index}"
            ),
        }
    files["gpu/nvlinks"] = P5_48XLARGE.gpu.nvlinks
    for node, cpus in enumerate(CPU_LISTS):
        files[f"gpu/sys/devices/system/node/node{node}/cpulist"] = cpus
    return files


def write_p5(folder: Path) -> None:
    """Writes the pretended machine into `folder`; does nothing when it is there already."""
    if (folder / _DONE).exists():
        return
    for path, content in _files().items():
        target = folder / path
        if path.endswith("/"):
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(f"{content}\n")
    program = folder / "gpu/usr/bin/nvidia-smi"
    program.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(pretended_nvidia_smi.__file__, program)
    program.chmod(0o755)
    (folder / _DONE).touch()
