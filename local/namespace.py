"""Starts, reaches and ends the process that holds the stack's namespaces."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from srvmod.local import facts
from srvmod.local.errors import LocalError
from srvmod.local.interrupts import undisturbed
from srvmod.local.paths import State

LISTENERS = ("api", "aws", "endpoint")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
END_TIMEOUT_SECONDS = 15.0
SUPERVISOR = "srvmod.local.supervisor"


def open_listeners(ports_file: Path) -> tuple[dict[str, socket.socket], dict[str, int]]:
    """One listening socket per way in, on the host's loopback: at the ports of the last start where they are free.

    They keep the host's network when the namespace's relay inherits them. Returns them and, per way in whose port
    somebody else has now, that port.
    """
    try:
        before: dict[str, int] = json.loads(ports_file.read_text())
    except (FileNotFoundError, ValueError):
        before = {}
    opened: dict[str, socket.socket] = {}
    taken: dict[str, int] = {}
    for name in LISTENERS:
        port = before.get(name, 0)
        try:
            opened[name] = _listen(port)
        except OSError as error:
            if not port or error.errno != errno.EADDRINUSE:
                raise
            taken[name], opened[name] = port, _listen(0)
    part = ports_file.with_suffix(".part")
    part.write_text(json.dumps({name: listener.getsockname()[1] for name, listener in opened.items()}))
    part.replace(ports_file)
    return opened, taken


def _listen(port: int) -> socket.socket:
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    return listener


def start(state: State, tools: Mapping[str, Path], stack_id: str, say: Callable[[str], None]) -> facts.Facts:
    """Start the supervisor in new namespaces and record how to reach it; `say` is told of changed ports.

    Raises LocalError when the supervisor ends at once or doesn't answer.
    """
    listeners, taken = open_listeners(state.ports_file)
    ports = {name: listener.getsockname()[1] for name, listener in listeners.items()}
    for name, port in taken.items():
        say(f"port {port} of the last start ({name}) is taken by another program; it is {ports[name]} now")
    argv = [
        "unshare",
        "--net",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child=SIGKILL",
        "--mount-proc",
        sys.executable,
        "-m",
        SUPERVISOR,
        "--state",
        str(state.root),
        "--tools",
        json.dumps({name: str(path) for name, path in tools.items()}),
        "--listeners",
        json.dumps({name: listener.fileno() for name, listener in listeners.items()}),
    ]
    env = {
        "PATH": _path(tools),
        "HOME": os.environ.get("HOME", "/root"),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "SRVMOD_LOCAL_API_URL": f"https://127.0.0.1:{ports['api']}",
        "SRVMOD_LOCAL_ID": stack_id,
        **{
            k: v
            for k, v in os.environ.items()
            if k in ("GOMODCACHE", "GOPATH", "SRVMOD_TOOLS", "PYTHONDONTWRITEBYTECODE")
        },
        # the simulated AWS and boto3 inside must never find the user's own credentials
        **facts.aws_environment(f"http://{facts.BRIDGE_ADDRESS}:{facts.AWS_PORT}"),
        "AWS_DEFAULT_REGION": facts.REGION,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }
    log = state.logs / "supervisor.log"
    with log.open("ab") as out, undisturbed():
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
            pass_fds=[listener.fileno() for listener in listeners.values()],
        )
        found = facts.Facts(
            stack_id,
            ports["api"],
            ports["aws"],
            ports["endpoint"],
            process.pid,
            facts.process_start(process.pid),
        )
        try:
            found.save(state.facts_file)
        except OSError:
            process.kill()  # nobody could find it again
            raise
    for listener in listeners.values():
        listener.close()
    await_answer(state, found)
    return found


def await_answer(state: State, found: facts.Facts, timeout_seconds: float = 30.0) -> None:
    """Until the supervisor answers. Raises LocalError when it has ended or stays silent."""
    log, deadline = state.logs / "supervisor.log", time.monotonic() + timeout_seconds
    while time.monotonic() < deadline:
        if not found.alive():
            state.facts_file.unlink(missing_ok=True)
            raise LocalError(
                f"the supervisor ended at once: {_tail(log)}", f"read {log}; then run `srvmod local up` again"
            )
        # the socket is there a moment before it is listened to
        with contextlib.suppress(LocalError):
            ask(state, "status")
            return
        time.sleep(0.05)
    raise LocalError(
        f"the supervisor (process {found.supervisor_pid}) didn't answer within {timeout_seconds:.0f} s: {_tail(log)}",
        "`srvmod local down`, then `srvmod local up`",
    )


def _path(tools: Mapping[str, Path]) -> str:
    """PATH inside: our Python, the built tools, Go (its module cache holds CRDs and stages), the system."""
    go = shutil.which("go")
    own = [Path(sys.executable).parent, tools["kubelet"].parent, *([Path(go).parent] if go else [])]
    return ":".join([*map(str, own), SYSTEM_PATH])


def _tail(file: Path, lines: int = 4) -> str:
    try:
        return " | ".join(file.read_text(errors="replace").strip().splitlines()[-lines:])
    except FileNotFoundError:
        return "(no log)"


def ask(state: State, op: str, timeout_seconds: float = 20.0, **arguments: Any) -> dict[str, Any]:
    """One request to the supervisor. Raises LocalError when nobody answers."""
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_seconds)
            connection.connect(str(state.socket))
            connection.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
            with connection.makefile("rb") as answer:
                return json.loads(answer.readline())
    except (OSError, ValueError) as error:
        raise LocalError(
            f"the stack's supervisor doesn't answer at {state.socket}: {error}",
            "`srvmod local down`, then `srvmod local up`",
        ) from error


def holders(state: State) -> list[int]:
    """Processes that hold namespaces of this state folder (`unshare` and the init in them), with or without record."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if SUPERVISOR in words and str(state.root) in words:
                    found.append(int(entry.name))
    return found


def end(state: State) -> bool:
    """End every process of the stack: ask, wait, then kill the namespaces' holder (the kernel ends the rest).

    Returns whether there was any.
    """
    holding = holders(state)
    inside = {pid: facts.process_start(pid) for holder in holding for pid in facts.inner_pids(holder).values()}
    if holding:
        with contextlib.suppress(LocalError):
            ask(state, "stop", 5.0)
            facts.await_end({pid: facts.process_start(pid) for pid in holding}, END_TIMEOUT_SECONDS)
    for pid in holders(state):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    left = facts.await_end(inside, END_TIMEOUT_SECONDS)
    if left:
        raise LocalError(
            f"processes {left} of the stack didn't end within {END_TIMEOUT_SECONDS:.0f} s",
            "look at them with `ps -fp PID`; run `srvmod local down` again",
        )
    return bool(holding)
