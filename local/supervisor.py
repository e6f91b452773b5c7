"""The init of the stack's namespaces: makes network and root file system, starts components, answers `status`.

Started by namespace.py through `unshare` in namespaces of its own (network, mount, pid), so it is pid 1 of a pid
namespace: when it ends, for whatever reason, the kernel ends everything that it started.
It doesn't restart what dies: `local status` says what is down, `local up` starts it again.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srvmod.local.components import Component, Plan
from srvmod.local.enclosure import own_network, own_root
from srvmod.local.health import FinalProblem
from srvmod.local.paths import REPO, State

POLL_SECONDS = 0.2
FULL_ROUND_SECONDS = 5.0
STOP_GRACE_SECONDS = 5.0
STUCK_SECONDS = 60.0  # longer than any pause of a healthy process on a busy machine
LAST_WORDS_BYTES = 4096
LAST_WORDS_LENGTH = 300  # characters of a log line that a status line can bear


class Process:
    """A component's process and what is known of it."""

    def __init__(self, component: Component, log: Path) -> None:
        self.component, self.log = component, log
        self.popen: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.healthy_at = 0.0
        self.problem = "not started"
        self.changing = threading.Lock()
        self.sick_since = 0.0  # monotonic seconds; 0 while healthy, and before it was healthy for the first time
        self.final = False
        """Whether the problem stays until somebody acts: waiting for it to go away is pointless."""

    @property
    def stuck(self) -> bool:
        """Whether it runs, was healthy once and hasn't answered for `STUCK_SECONDS`."""
        return self.running and bool(self.sick_since) and time.monotonic() - self.sick_since > STUCK_SECONDS

    @property
    def running(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    def start(self) -> None:
        """Start it. One that can't be started (no disk space, no program) has that as its problem."""
        self.started_at, self.healthy_at, self.problem, self.final = time.time(), 0.0, "starting", False
        self.sick_since = 0.0
        try:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("ab") as log:
                log.write(f"--- start {time.strftime('%H:%M:%S')}\n".encode())
                log.flush()
                self.popen = subprocess.Popen(
                    self.component.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **self.component.env},
                    pass_fds=self.component.pass_fds,
                    start_new_session=True,
                )
        except OSError as error:
            self.popen, self.problem, self.final = None, f"can't be started: {error}", True

    def check(self) -> None:
        """Ask the component's own health; a pid alone proves nothing."""
        popen = self.popen
        if popen is None:
            return
        problem, final = self._ask(popen)
        with self.changing:
            if self.popen is not popen:
                return  # it was started again meanwhile: the answer is about its predecessor
            self.problem, self.final = problem, final
            if not problem:
                self.healthy_at, self.sick_since = self.healthy_at or time.time(), 0.0
            elif self.healthy_at and not self.sick_since:
                self.sick_since = time.monotonic()

    def _ask(self, popen: subprocess.Popen[bytes]) -> tuple[str, bool]:
        """(problem or "", whether it is final)."""
        code = popen.poll()
        if code is not None:
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            return f"{how}{self._last_words(code)}; see {self.log}", True
        try:
            return self.component.health(), False
        except FinalProblem as error:
            return str(error), True
        except Exception as error:  # a health check that fails is this component's trouble, never the supervisor's end
            return f"its health can't be asked: {type(error).__name__}: {error}", False

    def forget(self) -> None:
        """End it if it runs, so that `watch` starts it once what it needs is healthy."""
        with self.changing:
            if self.running and self.popen:
                self.popen.kill()
                self.popen.wait()
            self.popen, self.problem, self.final, self.sick_since = None, "to be started again", False, 0.0

    def _last_words(self, code: int) -> str:
        """The last line of a process that ended by itself; one that was killed had none to say about it."""
        if code < 0:
            return ""
        with contextlib.suppress(OSError):
            lines = self.log.read_bytes()[-LAST_WORDS_BYTES:].decode(errors="replace").strip().splitlines()
            if lines and not lines[-1].startswith("--- start"):
                return f": {readable(lines[-1].strip())[:LAST_WORDS_LENGTH]}"
        return ""

    def report(self) -> dict[str, Any]:
        return {
            "name": self.component.name,
            "pid": self.popen.pid if self.running and self.popen else None,
            "healthy": self.running and not self.problem,
            "problem": self.problem,
            "final": self.final,
            "stuck": self.stuck,
            "startedAt": self.started_at,
            "healthyAt": self.healthy_at,
        }


def readable(line: str) -> str:
    """A log line for people: of one in JSON its message and error."""
    try:
        fields = json.loads(line)
        return ": ".join(str(fields[name]) for name in ("msg", "message", "error") if fields.get(name)) or line
    except (ValueError, AttributeError):
        return line


class Supervisor:
    """Starts components in dependency order, keeps their health current, stops them in reverse."""

    def __init__(self, components: list[Component], logs: Path) -> None:
        self.processes = {c.name: Process(c, logs / f"{c.name}.log") for c in components}
        self.stopping = asyncio.Event()

    def _ready_to_start(self, process: Process) -> bool:
        waits = process.popen is None and not process.final
        return waits and all(not self.processes[name].problem for name in process.component.after)

    async def watch(self) -> None:
        """Until told to stop: start what can start, ask everyone's health."""
        all_asked_at = 0.0
        while not self.stopping.is_set():
            for process in self.processes.values():
                if self._ready_to_start(process):
                    process.start()
            pending = [p for p in self.processes.values() if p.problem]
            slow_round = not pending
            # the others, too, now and then: one that is sick for long must not hide that another is stuck
            if slow_round or time.monotonic() - all_asked_at > FULL_ROUND_SECONDS:
                pending, all_asked_at = list(self.processes.values()), time.monotonic()
            await asyncio.gather(*(asyncio.to_thread(p.check) for p in pending))
            reap_orphans({p.popen.pid for p in self.processes.values() if p.popen})
            try:
                await asyncio.wait_for(self.stopping.wait(), 1.0 if slow_round else POLL_SECONDS)
            except TimeoutError:
                continue

    def restart_dead(self) -> list[str]:
        """Start again, in dependency order, what ended, couldn't be started, can't recover or is stuck.

        Returns the names.
        """
        parts = self.processes.values()
        dead = [p for p in parts if p.final or p.stuck or (p.popen is not None and not p.running)]
        for process in dead:
            process.forget()
        return [p.component.name for p in dead]

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One JSON line in, one out: {"op": "status" | "repair" | "stop"}."""
        try:
            request = json.loads(await reader.readline())
            op = request.get("op")
            if op == "status":
                if request.get("fresh"):
                    await asyncio.gather(*(asyncio.to_thread(p.check) for p in self.processes.values()))
                reply: Mapping[str, Any] = {"components": [p.report() for p in self.processes.values()]}
            elif op == "repair":
                reply = {"restarted": await asyncio.to_thread(self.restart_dead)}
            elif op == "stop":
                reply = {"stopping": True}
                self.stopping.set()
            else:
                reply = {"error": f"op {op!r}: expected status, repair or stop"}
            writer.write(json.dumps(reply).encode() + b"\n")
            await writer.drain()
        finally:
            writer.close()

    def stop_all(self) -> None:
        """Ask each to end, dependents first; what doesn't is killed (the namespace's end would do it anyway)."""
        for process in reversed(self.processes.values()):
            if process.running and process.popen:
                process.popen.terminate()
        deadline = time.monotonic() + STOP_GRACE_SECONDS
        for process in reversed(self.processes.values()):
            if process.popen is None:
                continue
            try:
                process.popen.wait(max(0.05, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.popen.kill()
                process.popen.wait()


def reap_orphans(own: set[int]) -> None:
    """Collect zombies whose parents are gone; pid 1 is their last parent. Own children belong to their Popen."""
    me = os.getpid()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in own:
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] == "Z" and int(fields[1]) == me:
            try:
                os.waitpid(int(entry.name), os.WNOHANG)
            except ChildProcessError:
                continue


async def serve(state: State, tools: Mapping[str, Path], listeners: Mapping[str, int]) -> None:
    supervisor = Supervisor(Plan(state, tools, listeners).components(), state.logs)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.stopping.set)
    state.socket.unlink(missing_ok=True)
    server = await asyncio.start_unix_server(supervisor.answer, state.socket)
    state.socket.chmod(0o600)
    async with server:
        await supervisor.watch()
        await asyncio.to_thread(supervisor.stop_all)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--state", type=Path, required=True)
    parser.add_argument("--tools", required=True, help="JSON object: tool name to path")
    parser.add_argument("--listeners", required=True, help="JSON object: name to inherited socket")
    args = parser.parse_args()
    state = State(args.state)
    tools = {name: Path(path) for name, path in json.loads(args.tools).items()}
    try:
        own_root(state.run / "root", [REPO, state.root])
        own_network()
        asyncio.run(serve(state, tools, json.loads(args.listeners)))
    except subprocess.CalledProcessError as error:
        sys.exit(f"`{' '.join(error.cmd)}`: {error.stderr.strip() or f'exit {error.returncode}'}")
    except OSError as error:
        sys.exit(f"{error.filename or 'the stack'}: {error.strerror or error}")


if __name__ == "__main__":
    main()
