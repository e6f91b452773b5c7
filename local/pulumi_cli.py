"""Runs the real `pulumi` against the local stack: the same program, only its calls end in the simulated AWS."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TextIO

from srvmod.local import facts
from srvmod.local.errors import LocalError
from srvmod.local.interrupts import undisturbed
from srvmod.local.paths import REPO, State

STACK = "local"
CANCEL_SECONDS = 60.0
"""The engine's last operations may be waits for pods; it ends them when it is asked to."""
RESOURCE_LINES_SECONDS = 2.0
PASSPHRASE = "srvmod-local"
"""Protects nothing: the local stack's state never leaves its 0700 folder and its keys are random per stack."""


def environment(state: State, found: facts.Facts, tools_bin: Path) -> dict[str, str]:
    """Variables that lead the plain `pulumi` command to the local stack (printed by `srvmod local env`)."""
    own = (REPO / "local/providers/bin", tools_bin, Path(sys.executable).parent)
    path = ":".join([*map(str, own), os.environ.get("PATH", "/usr/bin:/bin")])
    return {
        "PATH": path,
        "PULUMI_BACKEND_URL": f"file://{state.pulumi_backend}",
        "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
        "PULUMI_HOME": str(state.pulumi_home),
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
        "PULUMI_DIY_BACKEND_DISABLE_CHECKPOINT_BACKUPS": "true",
        "PULUMI_ERROR_OUTPUT_STRING": "true",
        **facts.aws_environment(found.aws_url),
        "SRVMOD_LOCAL_TOKEN_FILE": str(state.token_file),
        "SRVMOD_PYTHON": sys.executable,
        "KUBECONFIG": str(state.kubeconfig),
        "KUBECACHEDIR": str(state.cache / "kubectl"),
    }


class Pulumi:
    """The pulumi command with one environment; output goes to a log and, line by line, to `on_line`."""

    def __init__(self, binary: Path, env: Mapping[str, str], log: Path, project: Path = REPO) -> None:
        inherited = {name: value for name, value in os.environ.items() if name not in facts.OTHER_ACCOUNTS}
        self.binary, self.env, self.log, self.project = binary, {**inherited, **env}, log, project

    def run(self, *args: str, on_line: Callable[[str], None] | None = None) -> str:
        """Run to the end; returns stdout+stderr. Raises LocalError with the engine's own diagnostics."""
        argv = [str(self.binary), *args, "--non-interactive", "--color", "never", "-C", str(self.project)]
        lines: list[str] = []
        with self.log.open("a") as log:
            log.write(f"$ pulumi {' '.join(args)}\n")
            process = None
            try:
                with undisturbed():
                    process = subprocess.Popen(
                        argv,
                        env=self.env,
                        stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT,
                        text=True,
                        # a group of its own: the terminal's Ctrl-C reaches it once, through us
                        process_group=0,
                    )
                assert process.stdout
                for line in process.stdout:
                    log.write(line)
                    lines.append(line.rstrip())
                    if on_line:
                        on_line(line.rstrip())
                code = process.wait()
            except BaseException:
                if process is not None:
                    cancel(process, log)
                raise
        if code:
            said = diagnostics(lines)
            fix = f"mend what the message names and run it again (state is kept); whole log: {self.log}"
            if re.search(r"already ?exists", said, re.IGNORECASE):
                fix += "; if an engine was killed while it made that: `srvmod local down`, then `srvmod local up`"
            raise LocalError(f"`pulumi {' '.join(args)}` failed (exit {code}):\n{said}", fix)
        return "\n".join(lines)

    def select(self) -> None:
        """Select the stack, made if it isn't there; free of the locks of engines that were killed."""
        for lock in stale_locks(Path(self.env["PULUMI_BACKEND_URL"].removeprefix("file://"))):
            lock.unlink(missing_ok=True)
        self.run("stack", "select", STACK, "--create")

    def outputs(self) -> dict[str, object]:
        argv = [str(self.binary), "stack", "output", "--json", "--stack", STACK, "-C", str(self.project)]
        result = subprocess.run(
            argv, env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if result.returncode:
            raise LocalError(f"`pulumi stack output` failed: {result.stderr.strip()}", "run `srvmod local up`")
        return json.loads(result.stdout)


def cancel(process: subprocess.Popen[str], log: TextIO) -> None:
    """Ask the engine to end, which finishes what it has begun and saves its state; a second signal kills it."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    try:
        said, _ = process.communicate(timeout=CANCEL_SECONDS)
        log.write(said)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        # its plugins have groups of their own and end when they see that their engine is gone
        process.kill()
        process.wait()


def stale_locks(backend: Path) -> list[Path]:
    """Lock files of engines of this machine that don't run any more; they would refuse every later command."""
    return [file for file, pid in _locks(backend) if not facts.process_start(pid)]


def engines(backend: Path) -> list[int]:
    """Processes of engines that work on the stack now."""
    return [pid for _, pid in _locks(backend) if facts.process_start(pid)]


def end_engines(backend: Path, patience_seconds: float = 10.0) -> None:
    """End engines that work on the stack (of an `up` that was killed, or of a plain `pulumi`): ask, then kill."""
    for number in (signal.SIGINT, signal.SIGKILL):
        running = {pid: facts.process_start(pid) for pid in engines(backend)}
        for pid in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        facts.await_end(running, patience_seconds)


def _locks(backend: Path) -> list[tuple[Path, int]]:
    """Lock files of this machine's engines, with the process that wrote each."""
    found = []
    for file in sorted((backend / ".pulumi" / "locks").rglob("*.json")):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            holder = json.loads(file.read_text())
            if holder["hostname"] == os.uname().nodename:
                found.append((file, int(holder["pid"])))
    return found


class ResourceLines:
    """Tells the engine's progress: every few seconds a resource, and the first of each provider.

    Two hundred lines would hide the few that matter; the log has them all.
    """

    def __init__(self, progress: Callable[[str, str], None]) -> None:
        self.progress, self.done, self.told_at, self.providers = progress, 0, 0.0, set[str]()

    def __call__(self, line: str) -> None:
        words = line.split()
        if len(words) <= 3 or words[0] not in "+-~" or words[3] not in ("created", "updated", "deleted", "replaced"):
            return
        self.done += 1
        now, provider = time.monotonic(), words[1].partition(":")[0]
        if provider not in self.providers or now - self.told_at >= RESOURCE_LINES_SECONDS:
            self.providers.add(provider)
            self.told_at = now
            self.progress("pulumi up", f"resource {self.done}: {words[1]} {words[2]} {words[3]}")


def diagnostics(lines: list[str]) -> str:
    """The Diagnostics section of pulumi's output, else its last lines."""
    for index, line in enumerate(lines):
        if line.startswith("Diagnostics:"):
            return "\n".join(lines[index + 1 :]).strip()
    return "\n".join(lines[-15:])
