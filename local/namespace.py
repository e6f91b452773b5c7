"""Starts, reaches and ends the process that holds the stack's namespaces."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from srvmod.local import facts
from srvmod.local.errors import LocalError
from srvmod.local.paths import State

LISTENERS = ("api", "aws", "endpoint")
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
END_TIMEOUT_SECONDS = 15.0


def open_listeners() -> dict[str, socket.socket]:
    """One listening socket per way in, on free ports of the host's loopback. They keep the host's network when
    the namespace's relay inherits them."""
    opened = {}
    for name in LISTENERS:
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1024)
        opened[name] = listener
    return opened


def start(state: State, tools: Mapping[str, Path], stack_id: str, engine_kind: str) -> facts.Facts:
    """Start the supervisor in new namespaces and record how to reach it."""
    listeners = open_listeners()
    ports = {name: listener.getsockname()[1] for name, listener in listeners.items()}
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
        "srvmod.local.supervisor",
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
    with log.open("ab") as out:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=env,
            start_new_session=True,
            pass_fds=[listener.fileno() for listener in listeners.values()],
        )
    for listener in listeners.values():
        listener.close()
    found = facts.Facts(
        stack_id,
        ports["api"],
        ports["aws"],
        ports["endpoint"],
        process.pid,
        facts.process_start(process.pid),
        engine_kind,
    )
    found.save(state.facts_file)
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise LocalError(
                f"the supervisor ended at once (exit {process.returncode}): {_tail(log)}",
                f"read {log}; then run `srvmod local up` again",
            )
        if state.socket.exists():
            return found
        time.sleep(0.05)
    raise LocalError(f"the supervisor didn't answer within 30 s: {_tail(log)}", f"read {log}")


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
    """One request to the supervisor. Raises OSError when nobody answers."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(timeout_seconds)
        connection.connect(str(state.socket))
        connection.sendall(json.dumps({"op": op, **arguments}).encode() + b"\n")
        with connection.makefile("rb") as answer:
            return json.loads(answer.readline())


def end(state: State, found: facts.Facts) -> None:
    """End every process of the stack: ask, wait, then kill the namespace's holder (the kernel ends the rest)."""
    inside = facts.inner_pids(found.supervisor_pid) if found.alive() else {}
    if found.alive():
        with contextlib.suppress(OSError, ValueError):
            ask(state, "stop")
        deadline = time.monotonic() + END_TIMEOUT_SECONDS
        while found.alive() and time.monotonic() < deadline:
            time.sleep(0.1)
    if found.alive():
        os.kill(found.supervisor_pid, signal.SIGKILL)
    starts = {pid: facts.process_start(pid) for pid in inside.values()}
    deadline = time.monotonic() + END_TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if not any(start and facts.process_start(pid) == start for pid, start in starts.items()):
            return
        time.sleep(0.1)
    left = [pid for pid, start in starts.items() if start and facts.process_start(pid) == start]
    raise LocalError(
        f"processes {left} of the stack didn't end within {END_TIMEOUT_SECONDS:.0f} s",
        "look at them with `ps -fp PID`; run `srvmod local down` again",
    )
