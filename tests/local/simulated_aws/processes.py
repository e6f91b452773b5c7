"""Processes for the acceptance tests: the simulated AWS with a journal, and the pulumi command with our plugins."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

REPO = Path(__file__).resolve().parents[3]
PLUGINS = REPO / "local" / "providers" / "bin"


@dataclass
class Simulation:
    """The simulated AWS as a process of its own, with a journal."""

    folder: Path
    account: str = "123456789012"
    process: subprocess.Popen[bytes] | None = None
    port: int = 0

    def start(self) -> None:
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        (self.folder / "ca").write_text("CA")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "srvmod.local.aws", "--port", str(self.port), "--ready-file", str(ready),
             "--state", str(self.folder / "journal"), "--cluster-endpoint", "https://127.0.0.1:6443",
             "--cluster-ca", str(self.folder / "ca"), "--account", self.account],
        )  # fmt: skip
        until(ready.exists, 120)
        self.port = int(json.loads(ready.read_text())["url"].rsplit(":", 1)[1])

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@dataclass
class Cli:
    """pulumi in a project folder of its own."""

    project: Path
    env: dict[str, str] = field(default_factory=dict)

    def start(self, *args: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["pulumi", *args, "--non-interactive", "--color", "never"], cwd=self.project, env=self.env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip

    def __call__(self, *args: str, fails: bool = False) -> str:
        process = self.start(*args)
        out, _ = process.communicate(timeout=300)
        assert (process.returncode != 0) == fails, out
        return out

    def state(self) -> list[dict[str, Any]]:
        return list(json.loads(self("stack", "export"))["deployment"].get("resources", []))


def until(done: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.1)


def environment(folder: Path, simulation: Simulation) -> dict[str, str]:
    """Variables for a pulumi run whose state and home lie in ``folder``."""
    (folder / "backend").mkdir(parents=True, exist_ok=True)
    given = {
        "PATH": f"{PLUGINS}:{REPO / '.tools' / 'bin'}:{os.environ['PATH']}",
        "PULUMI_BACKEND_URL": f"file://{folder / 'backend'}",
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_CONFIG_PASSPHRASE": "x",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "true",
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{simulation.port}",
        "AWS_ACCESS_KEY_ID": "AKIATEST",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "SRVMOD_PYTHON": sys.executable,
    }
    return {**os.environ, **given}
