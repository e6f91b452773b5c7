"""Asks a binary for its version: by its own version command, or from the build information inside it."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
from pathlib import Path

from srvmod.tools.catalogue import Tool
from srvmod.tools.errors import ToolError
from srvmod.tools.golang import numbers

TIMEOUT_S = 30
# Layout: https://pkg.go.dev/debug/buildinfo (source of Go's debug/buildinfo): 14 bytes of magic, pointer size, flags;
# with flag 2 (Go 1.18 and later) two length-prefixed strings follow at offset 32: Go's version, then the modules.
_MAGIC = b"\xff Go buildinf:"
_HEADER = 32
_SENTINEL = 16  # bytes that frame the module text at either end


def version_in(text: str, pattern: str) -> str | None:
    """The first version that `pattern` finds in a tool's output, without its "v"; None if there is none."""
    found = re.search(pattern, text)
    return found[1].removeprefix("v") if found else None


def build_information(binary: Path) -> str:
    """The module text that Go wrote into `binary`, one record per line; "" if it isn't a whole Go binary."""
    with binary.open("rb") as file:
        if os.fstat(file.fileno()).st_size == 0:
            return ""
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            # The magic also occurs in programs that read build information themselves; the real one is aligned.
            at = data.find(_MAGIC)
            while at >= 0:
                if at % 16 == 0 and at + _HEADER < len(data) and data[at + 15] & 2:
                    try:
                        _, after = _string(data, at + _HEADER)
                        text, _ = _string(data, after)
                    except IndexError:
                        return ""  # cut off
                    return text[_SENTINEL:-_SENTINEL].decode(errors="replace")
                at = data.find(_MAGIC, at + 1)
    return ""


def _string(data: mmap.mmap, at: int) -> tuple[bytes, int]:
    """The string at `at` with its length as a varint in front, and where it ends."""
    length = shift = 0
    while True:
        byte = data[at]
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if not byte & 0x80:
            return data[at : at + length], at + length


def module_version(information: str, module: str) -> str | None:
    """The version of `module` in build information, without its "v"; None if the binary doesn't contain it."""
    found = re.search(rf"^(?:mod|dep)\t{re.escape(module)}\t(v\S+)", information, re.MULTILINE)
    return found[1].removeprefix("v") if found else None


def version_of(tool: Tool, binary: Path, scratch: Path) -> str:
    """The version that `binary` says it has.

    `scratch` is a folder for what the program writes on its own (Pulumi makes a home). Raises ToolError that holds
    the command, what came back and what was expected.
    """
    command = [str(binary), *tool.version_args]
    expected = f"{tool.name} {tool.version} from `{' '.join(command)}`"
    environment = {**os.environ, "PULUMI_HOME": str(scratch / "pulumi-home"), "PULUMI_SKIP_UPDATE_CHECK": "true"}
    fix = "rebuild it: delete the file and run `srvmod tools`"
    try:
        result = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"expected {expected}; found: no answer in {TIMEOUT_S} s", fix) from error
    except OSError as error:
        raise ToolError(f"expected {expected}; found: it can't be run ({error.strerror})", fix) from error
    said = result.stdout.decode(errors="replace").strip()
    if result.returncode:
        raise ToolError(f"expected {expected}; found: exit code {result.returncode}, {said[-400:] or 'no text'}", fix)
    if tool.pattern is None and tool.module is not None:
        version, where = module_version(build_information(binary), tool.module), "its build information"
    else:
        version, where = version_in(said, tool.pattern or ""), said[:400] or "no text"
    if version is None:
        raise ToolError(f"expected {expected}; found no version in {where}", fix)
    return version


def accepts(tool: Tool, version: str) -> bool:
    """Whether a binary of this version from PATH may stand in for the pinned one."""
    if tool.at_least is not None:
        return numbers(version) >= numbers(tool.at_least)
    return version == tool.version
