"""Fixtures that start the real parts: once per run, in a state folder of the tests' own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.machine import machine

REPO = Path(__file__).parents[2]
SRVMOD = [sys.executable, "-m", "srvmod.ops.cli"]


@dataclass(frozen=True)
class Stack:
    """A running local stack, driven by the commands that its users type."""

    state: Path
    first_up: dict[str, Any]
    machine_before: dict[str, set[str]]
    """What was on the machine before the first `up`."""

    @property
    def base_env(self) -> dict[str, str]:
        return {**os.environ, "SRVMOD_STATE": str(self.state)}

    def srvmod(self, *args: str, check: bool = True, timeout_seconds: float = 600) -> subprocess.CompletedProcess[str]:
        return self._run([*SRVMOD, *args], self.base_env, check, timeout_seconds)

    def status(self) -> dict[str, Any]:
        """`local status --json`, whatever its exit code says of health."""
        return json.loads(self.srvmod("local", "status", "--json", check=False).stdout)

    def env(self) -> dict[str, str]:
        """The environment that `srvmod local env` prints."""
        from srvmod.local import facts
        from srvmod.local.paths import State
        from srvmod.local.pulumi_cli import environment
        from srvmod.tools import BIN

        state = State(self.state)
        found = facts.load(state.facts_file)
        assert found
        return {**self.base_env, **environment(state, found, BIN)}

    def pulumi(self, *args: str, check: bool = True, timeout_seconds: float = 600) -> subprocess.CompletedProcess[str]:
        return self._run(["pulumi", *args, "--non-interactive", "--color", "never"], self.env(), check, timeout_seconds)

    def _run(
        self, command: list[str], env: dict[str, str], check: bool, timeout_seconds: float
    ) -> subprocess.CompletedProcess[str]:
        result = subprocess.run(
            command,
            cwd=REPO,
            env=env,
            capture_output=True,
            text=True,
            timeout=timeout_seconds,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if check and result.returncode:
            raise AssertionError(f"{' '.join(command)}: exit {result.returncode}\n{result.stdout}\n{result.stderr}")
        return result

    def kubectl(self, *args: str, stdin: str | None = None, check: bool = True) -> str:
        from srvmod.tools import kubectl

        result = subprocess.run(
            [str(kubectl()), *args],
            env=self.env(),
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        if check and result.returncode:
            raise AssertionError(f"kubectl {' '.join(args)}: {result.stderr}")
        return result.stdout

    def get(self, *args: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", *args, "-o", "json"))

    def config_file(self, folder: Path, change: Callable[[dict[str, Any]], None]) -> Path:
        """A copy of Pulumi.local.yaml with `change` applied to its `config`, for `pulumi --config-file`."""
        content = yaml.safe_load((REPO / "Pulumi.local.yaml").read_text())
        change(content["config"])
        file = folder / "Pulumi.local.yaml"
        file.write_text(yaml.safe_dump(content, sort_keys=False))
        return file


def eventually(what: str, seconds: float, probe: Callable[[], Any]) -> Any:
    """The first true answer of `probe` within `seconds` (a bound for a shared machine, not a goal)."""
    deadline, last = time.monotonic() + seconds, None
    while time.monotonic() < deadline:
        try:
            last = probe()
        except AssertionError as error:
            last = error
        if last and not isinstance(last, AssertionError):
            return last
        time.sleep(0.5)
    raise AssertionError(f"{what}: not within {seconds} s; last answer: {last!r}")


def without_stack() -> Stack:
    """The commands on the tests' state folder, with what runs there ended."""
    state = Path(os.environ.get("SRVMOD_TEST_STATE", REPO / ".srvmod" / "test"))
    Stack(state, {}, {}).srvmod("local", "down")
    return Stack(state, {}, machine(state))


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    """The local stack, up for the whole run; ended afterwards. SRVMOD_TEST_STATE keeps its caches elsewhere."""
    if os.geteuid() != 0:
        pytest.exit("acceptance tests need root: namespaces, mounts and cgroups of the stack's own", returncode=2)
    starter = without_stack()
    result = starter.srvmod("local", "up", "--json", timeout_seconds=3600, check=False)
    try:
        assert result.returncode == 0, f"local up failed:\n{result.stderr[-6000:]}"
        yield replace(starter, first_up=json.loads(result.stdout))
    finally:
        starter.srvmod("local", "down", check=False)
