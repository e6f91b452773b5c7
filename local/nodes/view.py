"""What runs on each real node, read from records and pid files."""

from __future__ import annotations

import json
from pathlib import Path

from srvmod.local.nodes.paths import MAX_SLOTS, Slot
from srvmod.local.paths import State


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
            names = ("containerd", "kubelet", "gpu-plugin")
            found[node["name"]] = {name: _pid(state.run / f"{slot.component(name)}.pid") for name in names}
    return found


def _pid(file: Path) -> int | None:
    try:
        return int(file.read_text())
    except (FileNotFoundError, ValueError):
        return None
