"""What runs on each real node, read from records and pid files."""

from __future__ import annotations

import json
from pathlib import Path

from srvmod.local.nodes.paths import MAX_SLOTS, Slot
from srvmod.local.paths import State

PROCESSES = {"namespace": "node", "containerd": "containerd", "kubelet": "kubelet", "gpu-plugin": "gpu-plugin"}
"""What a node's processes are called, and the name that their pid files carry (slot.py)."""


def processes(state_root: Path) -> dict[str, dict[str, int | None]]:
    """Per Node name: process name -> pid that was last started for it, None where there is none.

    Whether that process still runs is for the caller to see: pids are those of the stack's pid namespace.
    """
    state = State(state_root)
    found: dict[str, dict[str, int | None]] = {}
    for number in range(MAX_SLOTS):
        slot = Slot(state, number)
        if slot.record.exists():
            node = json.loads(slot.record.read_text())
            found[node["name"]] = {
                name: _pid(state.run / f"{slot.component(file)}.pid") for name, file in PROCESSES.items()
            }
    return found


def _pid(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
