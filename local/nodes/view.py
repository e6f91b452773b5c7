"""What runs on each real node, read from records and pid files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srvmod.local.nodes.paths import MAX_SLOTS, Slot
from srvmod.local.paths import State

PROCESSES = {"namespace": "node", "containerd": "containerd", "kubelet": "kubelet", "gpu-plugin": "gpu-plugin"}
"""What a node's processes are called, and the name that their pid files carry (slot.py)."""


PROGRAMS = {
    "namespace": "srvmod.local.nodes.hold",
    "containerd": "containerd",
    "kubelet": "kubelet",
    "gpu-plugin": "pretend-gpu-plugin",
}
"""What the first words of each process's command line name; a pid file may be older than the process with its pid."""


def components(state_root: Path, pids: Mapping[int, int]) -> list[dict[str, Any]]:
    """Each node's processes as `local status` shows them; `pids` lead from the stack's pid namespace to the caller's.

    The health of a node is its kubelet's own word in the Ready condition; this says that its processes run.
    """
    found = []
    for node, parts in processes(state_root).items():
        for name, inner in parts.items():
            seen = pids.get(inner or 0)
            pid = seen if seen and _is(name, seen) else None
            problem = "" if pid else "not running"
            found.append({"name": f"{name}@{node}", "pid": pid, "healthy": pid is not None, "problem": problem})
    return found


def _is(name: str, pid: int) -> bool:
    """Whether the process is the node's `name`, by its command line."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return False
    return PROGRAMS[name] in {Path(word).name for word in words[:3]}


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
