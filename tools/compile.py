"""One run's Go compilers: started, watched, ended, and their output verified before it is put in place."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from srvmod.tools import golang, gomod, paths, probe, stamps
from srvmod.tools.catalogue import Tool
from srvmod.tools.errors import ToolError

GRACE_S = 5.0


@dataclass(frozen=True, slots=True)
class _Watch:
    """What is being built, and who is told the seconds gone every `every_s` seconds."""

    what: str
    tick: Callable[[float], None]
    every_s: float


class Compiler:
    """Builds tools with one Go; everything half-done lies in a scratch folder of its own."""

    def __init__(self, go: str) -> None:
        paths.SCRATCH.mkdir(parents=True, exist_ok=True)
        self._go = go
        self._scratch = Path(tempfile.mkdtemp(prefix="run-", dir=paths.SCRATCH))
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()

    @property
    def stopped(self) -> bool:
        """Whether `stop` was called: nothing more is to be started."""
        return self._stop.is_set()

    def standard_library(self, say: Callable[[str], None]) -> None:
        """Compile Go's standard library first, or two tools that start together would both do it."""
        began = time.monotonic()
        self._run(["build", "std"], self._scratch, _Watch("Go's standard library", lambda _: None, GRACE_S))
        if time.monotonic() - began > 2:
            say(f"Go's standard library: compiled in {time.monotonic() - began:.0f} s")

    def build(self, tool: Tool, tick: Callable[[float], None], every_s: float) -> None:
        """Build, verify and install all programs of `tool`; `tick` is called with the seconds gone, every `every_s`.

        Raises ToolError with the compiler's last lines, or with the version that was found instead of the pinned one.
        """
        began = time.monotonic()
        folder = self._scratch / tool.name
        folder.mkdir()
        watch = _Watch(f"{tool.name} {tool.version}", tick, every_s)
        # -buildvcs=false: our own revision is no part of other people's programs, and would change their bytes.
        command = ["build", "-buildvcs=false", f"-tags={','.join(tool.tags)}", f"-ldflags={tool.linker_flags}"]
        command += self._overlay(tool, folder)
        finished: list[Path] = []
        for program in tool.programs:
            binary = folder / Path(program.output).name
            self._run([*command, "-o", str(binary), program.package], tool.folder, watch, cgo=tool.cgo)
            self._verify(tool, binary)
            finished.append(binary)
        for binary, output in zip(finished, tool.outputs, strict=True):
            output.parent.mkdir(parents=True, exist_ok=True)
            binary.replace(output)
        stamps.write(tool, time.monotonic() - began)
        shutil.rmtree(folder, ignore_errors=True)

    def _verify(self, tool: Tool, binary: Path) -> None:
        version = probe.version_of(tool, binary, self._scratch)
        if version != tool.version:
            raise ToolError(
                f"{tool.name}: expected version {tool.version} (pinned in {tool.home}/go.mod); found {version}",
                f"mend the linker flag that sets the version of {tool.name} in tools/catalogue.py",
            )

    def _overlay(self, tool: Tool, folder: Path) -> list[str]:
        """Go's -overlay option that puts files of the module beside our main package, without copying them."""
        if not tool.embedded or tool.module is None:
            return []
        module = gomod.gomod_dir(tool.module)
        replace = {str(tool.folder / name): str(module / source) for name, source in tool.embedded}
        file = folder / "overlay.json"
        file.write_text(json.dumps({"Replace": replace}))
        return [f"-overlay={file}"]

    def _run(self, command: list[str], where: Path, watch: _Watch, *, cgo: bool = False) -> None:
        """Run `go COMMAND` to its end; raises ToolError with its last words if it fails or was ended."""
        began = time.monotonic()
        environment = {**golang.environment(cgo=cgo), "GOTMPDIR": str(self._scratch)}
        with tempfile.TemporaryFile(dir=self._scratch) as log:
            with self._lock:
                if self.stopped:
                    raise ToolError(f"{watch.what}: interrupted", "run the same again; what is compiled is kept")
                # A session of its own: Ctrl-C reaches this program alone, which then ends the whole group.
                process = subprocess.Popen(
                    [self._go, *command],
                    cwd=where,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
                self._running.add(process)
            try:
                while True:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(watch.every_s)
                        break
                    watch.tick(time.monotonic() - began)
            finally:
                # Only after an exception (Ctrl-C in the main thread, a `tick` that raises) does it still run.
                _end([process])
                with self._lock:
                    self._running.discard(process)
            log.seek(0)
            said = log.read().decode(errors="replace").strip()
        if process.returncode:
            shown = " ".join(["go", *command])
            raise ToolError(
                f"{watch.what}: `{shown}` in {where} ended with {process.returncode}:\n{said[-1500:]}",
                golang.hint(said),
            )

    def stop(self) -> None:
        """End every compiler that this object started, with its children; safe to call from another thread."""
        self._stop.set()
        with self._lock:
            running = list(self._running)
        _end(running)

    def clean(self) -> None:
        """Remove this run's scratch folder. Modules' files are read-only, but nothing of theirs is copied here."""
        shutil.rmtree(self._scratch, ignore_errors=True)


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    """Ask those that still run to end, with their children, and wait for all; after GRACE_S they are killed."""
    groups = [process for process in processes if process.poll() is None]
    for process in groups:
        _signal(process, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_S
    while (groups := [process for process in groups if _lives(process)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    for process in groups:
        _signal(process, signal.SIGKILL)


def _lives(process: subprocess.Popen[bytes]) -> bool:
    """Whether the process or anything it started still runs; also reaps the process."""
    return process.poll() is None or _signal(process, 0)


def _signal(process: subprocess.Popen[bytes], number: int) -> bool:
    """Signal the process's whole group; False if nothing is left of it.

    The group's id is nobody else's as long as a member lives, and it is asked about without a pause until none does.
    """
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    return True
