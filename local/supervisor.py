"""The init of the stack's namespaces: makes network and root file system, starts components, answers `status`.

Started by namespace.py through `unshare` in namespaces of its own (network, mount, pid), so it is pid 1 of a pid
namespace: when it ends, for whatever reason, the kernel ends everything that it started.
It doesn't restart what dies: `local status` says what is down, `local up` starts it again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srvmod.local import facts
from srvmod.local.components import Component, Plan
from srvmod.local.paths import REPO, State

POLL_SECONDS = 0.2
STOP_GRACE_SECONDS = 5.0


class Process:
    """A component's process and what is known of it."""

    def __init__(self, component: Component, log: Path) -> None:
        self.component, self.log = component, log
        self.popen: subprocess.Popen[bytes] | None = None
        self.started_at = 0.0
        self.healthy_at = 0.0
        self.problem = "not started"

    @property
    def running(self) -> bool:
        return self.popen is not None and self.popen.poll() is None

    def start(self) -> None:
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
        self.started_at, self.healthy_at, self.problem = time.time(), 0.0, "starting"

    def check(self) -> None:
        """Ask the component's own health; a pid alone proves nothing."""
        if self.popen is None:
            return
        code = self.popen.poll()
        if code is not None:
            how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            self.problem, self.healthy_at = f"{how}; see {self.log}", 0.0
            return
        self.problem = self.component.health()
        if not self.problem and not self.healthy_at:
            self.healthy_at = time.time()

    def report(self) -> dict[str, Any]:
        return {
            "name": self.component.name,
            "pid": self.popen.pid if self.running and self.popen else None,
            "healthy": self.running and not self.problem,
            "problem": self.problem,
            "startedAt": self.started_at,
            "healthyAt": self.healthy_at,
        }


class Supervisor:
    """Starts components in dependency order, keeps their health current, stops them in reverse."""

    def __init__(self, components: list[Component], logs: Path) -> None:
        self.processes = {c.name: Process(c, logs / f"{c.name}.log") for c in components}
        self.stopping = asyncio.Event()

    def _ready_to_start(self, process: Process) -> bool:
        return process.popen is None and all(not self.processes[name].problem for name in process.component.after)

    async def watch(self) -> None:
        """Until told to stop: start what can start, ask everyone's health."""
        while not self.stopping.is_set():
            for process in self.processes.values():
                if self._ready_to_start(process):
                    process.start()
            pending = [p for p in self.processes.values() if p.problem]
            slow_round = not pending
            await asyncio.gather(*(asyncio.to_thread(p.check) for p in (pending or self.processes.values())))
            reap_orphans({p.popen.pid for p in self.processes.values() if p.popen})
            try:
                await asyncio.wait_for(self.stopping.wait(), 1.0 if slow_round else POLL_SECONDS)
            except TimeoutError:
                continue

    def restart_dead(self) -> list[str]:
        dead = [p for p in self.processes.values() if p.popen is not None and not p.running]
        for process in dead:
            process.start()
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
                reply = {"restarted": self.restart_dead()}
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
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields[0] == "Z" and int(fields[1]) == me:
            try:
                os.waitpid(int(entry.name), os.WNOHANG)
            except ChildProcessError:
                continue


def run(*argv: str) -> None:
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)


def own_root(scratch: Path, keep: list[Path]) -> None:
    """Give this mount namespace a root of its own: the machine's files below, a tmpfs above that takes all writes.

    So paths that parts insist on (/certs, /var/lib/kubelet, /mnt/k8s-disks) exist for them and for nobody else.
    `keep` are folders that stay the machine's own (checkout, state), without what is mounted below them.
    """
    run("mount", "--make-rprivate", "/")
    scratch.mkdir(parents=True, exist_ok=True)
    run("mount", "-t", "tmpfs", "-o", "mode=0755", "srvmod-root", str(scratch))
    for name in ("upper", "work", "root"):
        (scratch / name).mkdir()
    root = scratch / "root"
    run(
        "mount",
        "-t",
        "overlay",
        "srvmod-root",
        "-o",
        f"lowerdir=/,upperdir={scratch}/upper,workdir={scratch}/work",
        str(root),
    )
    for path, how in [(Path("/proc"), "--rbind"), (Path("/dev"), "--rbind"), *((path, "--bind") for path in keep)]:
        target = root / path.relative_to("/")
        target.mkdir(parents=True, exist_ok=True)
        run("mount", how, str(path), str(target))
    # a sysfs of its own, so that it shows this network namespace; the machine's cgroups below it
    run("mount", "-t", "sysfs", "sysfs", str(root / "sys"))
    run("mount", "--rbind", "/sys/fs/cgroup", str(root / "sys/fs/cgroup"))
    old = root / ".machine"
    old.mkdir()
    os.chdir(root)
    run("pivot_root", ".", ".machine")
    os.chroot(".")
    os.chdir("/")
    run("umount", "-l", "/.machine")


def own_network() -> None:
    """Loopback, and the bridge that holds node, pod and service addresses of this stack alone."""
    run("ip", "link", "set", "lo", "up")
    run("ip", "link", "add", facts.BRIDGE, "type", "bridge")
    addresses = [f"{facts.BRIDGE_ADDRESS}/{facts.BRIDGE_PREFIX_LENGTH}", f"{facts.API_SERVICE_ADDRESS}/32"]
    addresses += [f"10.88.0.{11 + slot}/32" for slot in range(facts.REAL_NODE_SLOTS)]
    for address in addresses:
        run("ip", "addr", "add", address, "dev", facts.BRIDGE)
    run("ip", "link", "set", facts.BRIDGE, "up")
    run("ip", "route", "add", "default", "via", facts.BRIDGE_ADDRESS)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


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
    own_root(state.run / "root", [REPO, state.root])
    own_network()
    tools = {name: Path(path) for name, path in json.loads(args.tools).items()}
    asyncio.run(serve(state, tools, json.loads(args.listeners)))
    sys.exit(0)


if __name__ == "__main__":
    main()
