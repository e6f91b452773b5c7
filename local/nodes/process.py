"""Background processes with a pid file, found again after their parent was killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

LOG_LIMIT = 20 * 1024 * 1024  # bytes; a longer log is moved aside when its process starts again


@dataclass(frozen=True)
class Daemon:
    """A process of the stack. `name` is its component name; its pid stands in <run>/<name>.pid.

    The pid is that of the stack's own pid namespace. A pid file alone proves nothing after a restart, since
    numbers are used again: `pid()` also compares the whole command line, before and after `enter` became `command`.
    """

    name: str
    command: Sequence[str]
    run: Path
    log: Path
    enter: Sequence[str] = ()  # a command that prepares something and then becomes `command`, as nsenter does
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def pid_file(self) -> Path:
        return self.run / f"{self.name}.pid"

    def pid(self) -> int | None:
        """The running process, or None."""
        try:
            pid = int(self.pid_file.read_text())
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except (OSError, ValueError):
            return None
        words = command.decode(errors="replace").rstrip("\0").split("\0")
        if words in (list(self.command), [*self.enter, *self.command]):
            return pid
        if not command:
            alive(pid)  # collects it if it is our own child, so that nobody takes it for a running process
        return None

    def start(self) -> int:
        """Starts the process unless it runs; returns its pid."""
        running = self.pid()
        if running is not None:
            return running
        self.run.mkdir(parents=True, exist_ok=True)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_LIMIT:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as log:
            child = subprocess.Popen(
                [*self.enter, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self.env},
                start_new_session=True,
            )
        partial = self.pid_file.with_suffix(".pid.new")
        partial.write_text(f"{child.pid}\n")
        partial.replace(self.pid_file)
        # Between fork and exec it has our own command line, which pid() doesn't know.
        deadline = time.monotonic() + 2
        while self.pid() is None and child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.005)
        return child.pid

    def stop(self, grace: float = 5.0) -> None:
        """Ends the process: SIGTERM, then SIGKILL after `grace` seconds. Does nothing when it doesn't run."""
        pid = self.pid()
        if pid is not None:
            stop_pid(pid, grace)
        self.pid_file.unlink(missing_ok=True)


def stop_pid(pid: int, grace: float) -> None:
    """SIGTERM, then SIGKILL after `grace` seconds; returns when the process is gone."""
    for number, seconds in ((signal.SIGTERM, grace), (signal.SIGKILL, 5.0)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if not alive(pid):
                return
            time.sleep(0.02)


def alive(pid: int) -> bool:
    """True while the process exists and isn't a zombie; collects it when it is our own child."""
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:
            return False
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"
