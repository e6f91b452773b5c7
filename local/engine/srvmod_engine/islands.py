"""Start-up check: the GPUs of this container are one island, and as many as there are tensor-parallel workers.

The kubelet's device manager writes the allocated ids into NVIDIA_VISIBLE_DEVICES. On the simulated p5.48xlarge
they are GPU-0 … GPU-7, with GPU-0..3 on NUMA node 0 and GPU-4..7 on NUMA node 1. An engine whose GPUs cross
islands would run on a real machine, slowly; so it must not start here.
"""

from collections.abc import Mapping
from typing import Final

from srvmod_engine.errors import IslandError

P5_ISLANDS: Final = (
    frozenset({"GPU-0", "GPU-1", "GPU-2", "GPU-3"}),
    frozenset({"GPU-4", "GPU-5", "GPU-6", "GPU-7"}),
)
"""Ids per NUMA node, as the pretend GPU plugin of the local stack announces them."""

VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
TOPOLOGY: Final = "SRVMOD_SIM_ISLANDS"
SKIP: Final = "none"


def parse_topology(text: str) -> tuple[frozenset[str], ...]:
    """Read `a,b;c,d` (islands separated by `;`). Raises IslandError when an id appears twice or none is named."""
    islands = tuple(
        frozenset(part.strip() for part in group.split(",") if part.strip())
        for group in text.split(";")
        if group.strip()
    )
    ids = [gpu for island in islands for gpu in island]
    if not ids or len(ids) != len(set(ids)):
        raise IslandError(f"{TOPOLOGY}={text!r}: expected islands like 'GPU-0,GPU-1;GPU-2,GPU-3' with each GPU once")
    return islands


def check_island(env: Mapping[str, str], tensor_parallel_size: int) -> tuple[str, ...]:
    """The GPU ids of this engine, sorted; empty when the check is switched off by SRVMOD_SIM_ISLANDS=none.

    Raises IslandError naming the ids, the islands and the remedy.
    """
    topology = env.get(TOPOLOGY, "")
    if topology == SKIP:
        return ()
    islands = parse_topology(topology) if topology else P5_ISLANDS
    visible = env.get(VISIBLE, "")
    ids = [part.strip() for part in visible.split(",") if part.strip()]
    if not ids:
        raise IslandError(
            f"{VISIBLE} is {visible!r}: no GPU was allocated to this container. "
            f"Request nvidia.com/gpu: {tensor_parallel_size} (outside a pod, set {TOPOLOGY}={SKIP})"
        )
    if len(ids) != len(set(ids)):
        raise IslandError(f"{VISIBLE}={visible}: the same GPU is named twice")
    known = {gpu: index for index, island in enumerate(islands) for gpu in island}
    if unknown := [gpu for gpu in ids if gpu not in known]:
        raise IslandError(
            f"{VISIBLE}={visible}: {', '.join(unknown)} not in this machine's islands "
            f"({_describe(islands)}); an explicit list of device ids is needed, 'all' is not one"
        )
    if len(ids) != tensor_parallel_size:
        raise IslandError(
            f"{VISIBLE}={visible}: {len(ids)} GPUs for --tensor-parallel-size {tensor_parallel_size}; "
            "make the limit of nvidia.com/gpu and the option the same number"
        )
    crossed = sorted({known[gpu] for gpu in ids})
    if len(crossed) > 1:
        raise IslandError(
            f"{VISIBLE}={visible} crosses islands {crossed} ({_describe(islands)}): tensor-parallel traffic would "
            "leave the NUMA node. The kubelet needs topologyManagerPolicy single-numa-node, and the pod "
            "Guaranteed QoS with whole CPUs"
        )
    return tuple(sorted(ids))


def _describe(islands: tuple[frozenset[str], ...]) -> str:
    return "; ".join(f"island {index}: {', '.join(sorted(island))}" for index, island in enumerate(islands))
