"""Ctrl-C, SIGTERM and SIGKILL in the middle of a build: no process, no half file, and the next run works."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from srvmod.tools import builder, paths
from srvmod.tools.catalogue import Tool

RUN = """
import sys
from pathlib import Path
from srvmod.tools import builder, catalogue, paths
from srvmod.tools.catalogue import Program, Tool
for name, below in {"TOOLS": "", "BIN": "bin", "STAMPS": "stamps", "SCRATCH": "tmp", "LOCK": "lock"}.items():
    setattr(paths, name, Path(sys.argv[1]) / below)
catalogue.TOOLS_BY_NAME.clear()
for home in sys.argv[2:]:
    name = Path(home).name
    catalogue.TOOLS_BY_NAME[name] = Tool(
        name, home, f"a.example/{name}", (Program(f"a.example/{name}", f"bin/{name}"),), "", lane=name,
        ldflags="-X main.version={version}",
    )
builder.ensure(list(catalogue.TOOLS_BY_NAME), lambda line: print(line, flush=True))
"""


def sleepers(marker: str) -> list[int]:
    """Processes whose command line holds `marker`."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                if marker in (folder / "cmdline").read_text():
                    found.append(int(folder.name))
            except OSError:
                continue
    return found


@pytest.mark.usefixtures("machine")
@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="needs /proc to count processes")
@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, -signal.SIGINT), (signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_build_that_is_ended(
    make_tool: Callable[..., Tool],
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    code: int,
) -> None:
    homes = [make_tool(name, lane=name).home for name in ("one", "two")]
    length = f"30.{os.getpid()}{int(number)}"
    monkeypatch.setenv("FAKE_GO_SLEEP", length)
    process = subprocess.Popen([sys.executable, "-c", RUN, str(paths.TOOLS), *homes], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while len(sleepers(f"sleep\0{length}")) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    try:
        assert len(sleepers(f"sleep\0{length}")) == 2
        process.send_signal(number)
        assert process.wait(15) == code
        if number != signal.SIGKILL:
            assert sleepers(f"sleep\0{length}") == []
            assert list(paths.SCRATCH.iterdir()) == []
    finally:
        for pid in sleepers(f"sleep\0{length}"):
            os.kill(pid, signal.SIGKILL)
    assert not paths.BIN.exists()
    monkeypatch.delenv("FAKE_GO_SLEEP")
    assert set(builder.ensure(["one", "two"])) == {"one", "two"}
    assert list(paths.SCRATCH.glob("run-*")) == []
