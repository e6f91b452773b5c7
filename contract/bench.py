"""What every `srvmod bench NAME --json` prints: one object of one shape, whatever room measured it."""

import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


def machine() -> dict[str, Any]:
    """The machine that figures were measured on."""
    return {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()}


@dataclass(frozen=True)
class BenchResult:
    """Figures of one benchmark against their goals. `goals` has bounds by figure; `met` says whether all hold."""

    name: str
    figures: Mapping[str, Any]
    goals: Mapping[str, float]
    met: bool

    def as_json(self) -> dict[str, Any]:
        """The object that `--json` prints."""
        return {
            "name": self.name,
            "machine": machine(),
            "figures": dict(self.figures),
            "goals": dict(self.goals),
            "met": self.met,
        }
