"""Ctrl-C in each phase of `local up`: one line, exit code 130, nothing half-dead, and both ways on work."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance.conftest import REPO, SRVMOD, Stack, without_stack
from tests.acceptance.machine import left_behind, processes_of

pytestmark = pytest.mark.acceptance


@dataclass(frozen=True)
class Phase:
    """A progress line at which Ctrl-C comes, and whether `down` follows (otherwise the next `up` goes on)."""

    line: str
    down: bool = False


CONTROL_PLANE = Phase(r"control plane\s+starting in namespaces")
PROGRAM = Phase(r"pulumi up\s+.* created")
ALL = (
    Phase(r"tools\s+from PATH"),
    Phase(r"images\s+packing"),
    CONTROL_PLANE,
    Phase(r"control plane\s+waiting for .*kube-apiserver", down=True),
    Phase(r"CRDs\s"),
    Phase(r"pulumi up\s+the program"),
    PROGRAM,
    Phase(r"weights\s+.* uploaded", down=True),
    Phase(r"pulumi up\s+.*eks:.*created"),
    Phase(r"pulumi up\s+.*kubernetes:.*created"),
    Phase(r"engines\s+0 of .* booting", down=True),
    Phase(r"engines\s+.*(filling weights|engines starting)"),
    Phase(r"completion\s+streaming"),
)
PHASES = ALL if os.environ.get("SRVMOD_FULL") else (CONTROL_PLANE, PROGRAM)
END_SECONDS = 75.0
"""What Ctrl-C may take: the engine finishes what it has begun, or is ended after a minute."""


@pytest.fixture
def nothing_runs() -> Iterator[Stack]:
    stack = without_stack()
    yield stack
    stack.srvmod("local", "down")


def up_in_the_foreground(stack: Stack) -> subprocess.Popen[str]:
    """`local up` as a process group of its own, as a terminal starts it; its progress is on stderr."""
    return subprocess.Popen(
        [*SRVMOD, "local", "up"],
        cwd=REPO,
        env=stack.base_env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def interrupted_up(stack: Stack, phase: Phase) -> tuple[str, float]:
    """`local up` with Ctrl-C at the phase: what it said afterwards, and the seconds until it ended."""
    with up_in_the_foreground(stack) as process:
        assert process.stderr
        seen = []
        for line in process.stderr:
            seen.append(line)
            if re.search(phase.line, line):
                break
        else:
            raise AssertionError(f"{phase.line!r} never came; exit {process.wait()}:\n{''.join(seen)}")
        began = time.monotonic()
        os.killpg(process.pid, signal.SIGINT)
        said = process.stderr.read()
        assert process.wait(END_SECONDS) == 130, said
        return said, time.monotonic() - began


def outside(state: Path) -> list[str]:
    """Processes of the state folder that aren't in the stack's own namespaces, its holder excepted."""
    own = Path("/proc/self/ns/pid").readlink()
    found = []
    for line in processes_of(state):
        pid, _, command = line.partition(" ")
        try:
            inside = Path(f"/proc/{pid}/ns/pid").readlink() != own
        except OSError:
            continue
        if not inside and not command.startswith("unshare "):
            found.append(line)
    return found


def assert_status_is_true(stack: Stack) -> None:
    """`status` says what can be seen otherwise: a namespace, and the processes in it."""
    result = stack.srvmod("local", "status", "--json", check=False)
    status = json.loads(result.stdout)
    assert status["running"] == bool(processes_of(stack.state))
    if not status["running"]:
        assert result.returncode == 3
        return
    for component in status["components"]:
        assert bool(component["pid"]) == (component["pid"] is not None and Path(f"/proc/{component['pid']}").exists())
        assert component["healthy"] or component["problem"], component
        assert component["pid"] or not component["healthy"], component
    sick = [c for c in status["components"] if not c["healthy"]]
    assert result.returncode == (1 if sick or status["problem"] else 0)


def test_ctrl_c_in_each_phase_leaves_a_stack_that_goes_on_or_ends(nothing_runs: Stack) -> None:
    stack = nothing_runs
    for phase in PHASES:
        said, seconds = interrupted_up(stack, phase)
        print(f"{phase.line}: ended {seconds:.1f} s after Ctrl-C: {said.splitlines()[-1]}", flush=True)
        assert "Traceback" not in said, said
        lines = [line for line in said.splitlines() if line.startswith("interrupted")]
        assert lines == said.splitlines()[-1:], said
        assert "`srvmod local up`" in lines[0]
        assert seconds < END_SECONDS
        assert not outside(stack.state)
        assert_status_is_true(stack)
        if phase.down:
            stack.srvmod("local", "down")
            assert not processes_of(stack.state)
            assert not left_behind(stack.machine_before, stack.state)
    began = time.monotonic()
    finished = json.loads(stack.srvmod("local", "up", "--json").stdout)
    print(f"the last `up` went on for {time.monotonic() - began:.1f} s")
    assert finished["completion"]["tokens"] == 24
    assert all(c["healthy"] for c in finished["components"]), finished["components"]
    stack.srvmod("local", "down")
    assert not processes_of(stack.state)
    assert not left_behind(stack.machine_before, stack.state)
    assert not (stack.state / "local").exists()


def test_only_one_command_works_at_a_time(nothing_runs: Stack) -> None:
    """A second `up`, and a `down`, while the first `up` runs: both are refused by name, and the first goes on."""
    stack = nothing_runs
    with up_in_the_foreground(stack) as first:
        assert first.stderr
        for line in first.stderr:
            if "starting in namespaces" in line:
                break
        for command in ("up", "down"):
            second = stack.srvmod("local", command, check=False)
            assert second.returncode == 1
            assert f"`srvmod local up` (process {first.pid}) works on {stack.state}" in second.stderr
            assert f"kill -INT {first.pid}" in second.stderr
        assert first.poll() is None
        first.send_signal(signal.SIGTERM)
        said = first.stderr.read()
        assert first.wait(END_SECONDS) == 143, said
        assert "interrupted (SIGTERM)" in said.splitlines()[-1]
    stack.srvmod("local", "down")
    assert not processes_of(stack.state)
    assert not left_behind(stack.machine_before, stack.state)
