"""Which GPUs the kubelet gave to which pod, from the checkpoint that its device manager keeps."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

RESOURCE = "nvidia.com/gpu"
ANNOTATION = "srvmod.dev/gpus"
"""On an engine's pod: the indices of its GPUs, sorted, as "0,1,2,3"."""
CHECKPOINT = Path("device-plugins") / "kubelet_internal_checkpoint"


def gpus_by_pod(kubelet_root: Path) -> dict[str, list[int]]:
    """Pod uid -> sorted GPU indices. Empty before the kubelet has given out any."""
    try:
        data = json.loads((kubelet_root / CHECKPOINT).read_text())["Data"]
    except FileNotFoundError:
        return {}
    found: dict[str, list[int]] = defaultdict(list)
    for entry in data.get("PodDeviceEntries") or []:
        if entry["ResourceName"] == RESOURCE:
            for devices in (entry["DeviceIDs"] or {}).values():
                found[entry["PodUID"]] += [int(device.rpartition("-")[2]) for device in devices]
    return {uid: sorted(indices) for uid, indices in found.items()}
