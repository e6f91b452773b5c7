"""Where this room keeps its files: everything lies under one folder of the project, `.tools` (or SRVMOD_TOOLS)."""

from __future__ import annotations

import os
from pathlib import Path

# This file is reached through the link src/srvmod/tools, hence resolve().
ROOT = Path(__file__).resolve().parent.parent
MODULES = ROOT / "tools" / "modules"
TOOLS = Path(os.environ.get("SRVMOD_TOOLS") or ROOT / ".tools").expanduser().absolute()
BIN = TOOLS / "bin"
CNI_BIN = TOOLS / "cni" / "bin"
CHARTS = TOOLS / "charts"
STAMPS = TOOLS / "stamps"
SCRATCH = TOOLS / "tmp"
LOCK = TOOLS / "lock"
