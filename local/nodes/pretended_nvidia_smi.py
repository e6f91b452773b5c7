#!/usr/bin/env python3
"""nvidia-smi of a pretended p5: answers two questions about the GPUs that the container got, from the files around it.

It lies in the pretended machine's usr/bin, which containers with GPUs get mounted. Like the real one it lists only
what the container may use (NVIDIA_VISIBLE_DEVICES) and numbers that from 0 in the order of PCI addresses.
"""

import os
import sys
from itertools import count
from pathlib import Path

QUERY = "--query-gpu=index,pci.bus_id,name,mig.mode.current"


def visible(root: Path) -> list[tuple[str, dict[str, str]]]:
    """PCI address and driver's information of each GPU that the container got."""
    wanted = os.environ.get("NVIDIA_VISIBLE_DEVICES", "").split(",")
    found = []
    for folder in sorted((root / "proc/driver/nvidia/gpus").iterdir()):
        lines = (line.split(":", 1) for line in (folder / "information").read_text().splitlines())
        information = {key.strip(): value.strip() for key, value in lines}
        if information["GPU UUID"] in wanted:
            found.append((folder.name, information))
    return found


def query(root: Path) -> str:
    """The answer to QUERY: NVML writes PCI domains with eight digits."""
    rows = zip(count(), visible(root), strict=False)
    return "\n".join(f"{i}, 0000{address.upper()}, {gpu['Model']}, Disabled" for i, (address, gpu) in rows)


def topology(root: Path) -> str:
    """The matrix of `topo -m`, tab-separated, its header underlined as on a terminal."""
    gpus = visible(root)
    links = f"NV{(root / 'nvlinks').read_text().strip()}"
    names = [f"GPU{index}" for index in range(len(gpus))]
    lines = ["\t\x1b[4m" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\x1b[0m"]
    for index, (address, _) in enumerate(gpus):
        device = root / "sys/bus/pci/devices" / address
        near = [(device / name).read_text().strip() for name in ("local_cpulist", "numa_node")]
        cells = [" X " if other == index else links for other in range(len(gpus))]
        lines.append("\t".join([names[index], *cells, near[0], near[1], "N/A"]))
    return "\n".join([*lines, "", "Legend:", "", "  X    = Self", "  NV#  = Connection traversing # NVLinks"])


def main(arguments: list[str]) -> int:
    """The command; exit code 2 for a question that it can't answer, 6 as nvidia-smi's when there is no GPU."""
    root = Path(__file__).resolve().parents[2]
    if not visible(root):
        print("No devices were found")
        return 6
    if arguments == [QUERY, "--format=csv,noheader"]:
        print(query(root))
        return 0
    if arguments == ["topo", "-m"]:
        print(topology(root))
        return 0
    print(
        f"{arguments}: the pretended nvidia-smi answers `{QUERY} --format=csv,noheader` and `topo -m`", file=sys.stderr
    )
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
