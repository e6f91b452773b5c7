"""Reads go.mod files and finds modules in Go's module cache."""

from __future__ import annotations

import json
import re
import subprocess
from functools import lru_cache
from pathlib import Path

from srvmod.tools import golang, paths
from srvmod.tools.errors import ToolError

# Modules that no tool is named after but whose files (CRDs) are used: the folder whose go.mod pins them for us.
BORROWED = {"sigs.k8s.io/karpenter": "kubernetes", "sigs.k8s.io/gateway-api": "envoy-gateway"}


def version_of(go_mod: Path, module: str) -> str:
    """The version that `go_mod` requires of `module`, for example "v1.36.3". Raises ToolError if it doesn't."""
    found = re.search(rf"^\s*(?:require\s+)?{re.escape(module)}\s+(v\S+)", _text(go_mod), re.MULTILINE)
    if not found:
        raise ToolError(f"{go_mod}: no version of {module} is required", f"run `go get {module}@VERSION` beside it")
    return found[1]


def go_version_of(go_mod: Path) -> str:
    """The oldest Go that `go_mod` accepts, for example "1.26.8"."""
    found = re.search(r"^go\s+(\d+(?:\.\d+)+)", _text(go_mod), re.MULTILINE)
    if not found:
        raise ToolError(f"{go_mod}: no `go` line", "add one with the Go version, for example `go 1.26.8`")
    return found[1]


def _text(go_mod: Path) -> str:
    try:
        return go_mod.read_text()
    except OSError as error:
        raise ToolError(f"{go_mod}: can't be read ({error.strerror})", "check out the whole repository") from error


@lru_cache
def home_of(module: str) -> Path:
    """The folder under tools/modules that pins `module`. Raises ToolError when none or several do."""
    if module in BORROWED:
        return paths.MODULES / BORROWED[module]
    tool = rf"^(?:tool\s+|\t){re.escape(module)}(?:/\S+)?$"
    own = [path.parent for path in sorted(paths.MODULES.glob("*/go.mod")) if re.search(tool, _text(path), re.MULTILINE)]
    direct = rf"^(?:require\s+|\t){re.escape(module)}\s+v\S+$"
    own = own or [
        path.parent for path in sorted(paths.MODULES.glob("*/go.mod")) if re.search(direct, _text(path), re.M)
    ]
    if len(own) != 1:
        found = ", ".join(path.name for path in own) or "none"
        raise ToolError(
            f"module {module}: exactly one folder of {paths.MODULES} must build from it; found: {found}",
            "name a module that a tool is built from, or add it to BORROWED in tools/gomod.py",
        )
    return own[0]


@lru_cache
def gomod_dir(module: str) -> Path:
    """The folder of `module` in the module cache, at the pinned version; fetched if it isn't there yet.

    Raises ToolError when Go is missing, the module isn't pinned here, or it can't be fetched.
    """
    home = home_of(module)
    wanted = version_of(home / "go.mod", module)
    go = golang.require(go_version_of(home / "go.mod"), f"module {module} {wanted}")
    result = subprocess.run(
        [go, "mod", "download", "-json", module],
        cwd=home,
        env=golang.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        answer = json.loads(result.stdout)
    except json.JSONDecodeError:
        answer = {}
    folder = Path(answer.get("Dir", ""))
    if result.returncode or answer.get("Version") != wanted or not folder.is_dir():
        said = (answer.get("Error") or result.stderr or result.stdout).strip()
        raise ToolError(f"module {module} {wanted} can't be fetched: {said[-800:]}", golang.hint(said))
    return folder
