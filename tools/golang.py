"""The Go command: found, old enough or not, and the environment in which everything is built."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import lru_cache

from srvmod.tools.errors import ToolError

# Flags are part of the build cache's key: one set for all tools, so that a package compiles once.
FLAGS = "-trimpath"


def environment(*, cgo: bool = False) -> dict[str, str]:
    """The caller's environment with what must be the same in every build.

    GOTOOLCHAIN=local: the Go that is installed is used, none is downloaded behind the user's back. GOGC=400 trades
    the compiler's memory for time (a tenth faster on 2 cores, some 300 MB more).
    """
    fixed = {"GOTOOLCHAIN": "local", "GOFLAGS": FLAGS, "GOGC": "400", "GOWORK": "off", "CGO_ENABLED": str(int(cgo))}
    return {**os.environ, **fixed}


def numbers(version: str) -> tuple[int, ...]:
    """ "1.26.8" → (1, 26, 8), for comparing; pre-release and build parts are left out."""
    found = re.match(r"(?:go|v)?(\d+(?:\.\d+)*)", version)
    return tuple(int(part) for part in found[1].split(".")) if found else ()


@lru_cache
def _found(path: str | None) -> tuple[str, str] | None:
    """(path, version) of `go` on this PATH; the parameter is the cache's key."""
    go = shutil.which("go", path=path)
    if go is None:
        return None
    result = subprocess.run([go, "env", "GOVERSION"], env=environment(), capture_output=True, text=True, check=False)
    release = re.search(r"go\d+(?:\.\d+)+", result.stdout)
    return go, release[0].removeprefix(
        "go"
    ) if release else f"unknown ({(result.stdout + result.stderr).strip()[-200:]})"


def require(version: str, wanted_for: str) -> str:
    """The path of a Go that is at least `version`. Raises ToolError that says who wanted it and what was found."""
    fix = f"install Go {version} or newer (https://go.dev/dl/) and put its bin folder on PATH"
    found = _found(os.environ.get("PATH"))
    if found is None:
        raise ToolError(f"{wanted_for}: needs Go {version} or newer; no `go` was found on PATH", fix)
    go, have = found
    if numbers(have) < numbers(version):
        raise ToolError(f"{wanted_for}: needs Go {version} or newer; {go} is {have}", fix)
    return go


def hint(said: str) -> str:
    """What to do about a failed Go command, judged by what it said."""
    causes = (
        (r"no space left on device", "free some space: a first build needs about 15 GB in Go's caches and .tools"),
        (
            r"dial tcp|i/o timeout|connection re(?:fused|set)|no such host|proxyconnect|TLS handshake|: 50[0-9] ",
            "the module proxy can't be reached: check the network and `go env GOPROXY`, then run the same again",
        ),
        (
            r"checksum mismatch|missing go.sum entry|updates to go.mod needed|SECURITY ERROR",
            "go.mod and go.sum don't fit together: check out both again, or run `go mod tidy` after a changed pin",
        ),
        (r"signal: killed|cannot allocate memory", "memory ran out: build one tool at a time, `srvmod tools NAME`"),
        (r"permission denied|read-only file system", "make the folder that is named writable"),
        (r"gcc|C compiler", "install a C compiler (Debian: apt install gcc libc6-dev)"),
    )
    for pattern, fix in causes:
        if re.search(pattern, said):
            return fix
    return "the lines above are the compiler's own; run the same command again to see whether it was a passing fault"
