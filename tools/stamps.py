"""Stamps: what a binary in the tools folder was built from, so that a changed pin or a damaged file is noticed."""

from __future__ import annotations

import hashlib
import json
import platform
from pathlib import Path
from typing import Any

from srvmod.tools import golang, paths
from srvmod.tools.catalogue import Tool, source_digest


def digest(tool: Tool) -> str:
    """sha256 over all that decides what is built: go.mod, go.sum, own sources, packages, flags, version, machine."""
    parts = (
        source_digest(tool.folder),
        [(program.package, program.output) for program in tool.programs],
        [tool.version, tool.linker_flags, *tool.tags, golang.FLAGS, tool.cgo],
        [platform.system(), platform.machine()],
    )
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _files(tool: Tool) -> dict[str, list[int]]:
    """Size and time of each output; raises OSError if one is missing."""
    found = {program.output: path.stat() for program, path in zip(tool.programs, tool.outputs, strict=True)}
    return {output: [stat.st_size, stat.st_mtime_ns] for output, stat in found.items()}


def _stamp(tool: Tool) -> Path:
    return paths.STAMPS / f"{tool.name}.json"


def write(tool: Tool, seconds: float) -> None:
    """Record that the outputs in place were built from what the catalogue says now."""
    paths.STAMPS.mkdir(parents=True, exist_ok=True)
    record = {"digest": digest(tool), "version": tool.version, "seconds": round(seconds, 1), "files": _files(tool)}
    temporary = _stamp(tool).with_suffix(".part")
    temporary.write_text(json.dumps(record, indent=2) + "\n")
    temporary.replace(_stamp(tool))


def read(tool: Tool) -> dict[str, Any] | None:
    """The stamp if it still holds for the files in place, else None."""
    try:
        record = json.loads(_stamp(tool).read_text())
        holds = record["digest"] == digest(tool) and record["files"] == _files(tool)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return record if holds else None
