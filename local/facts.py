"""What `up` decided and every later command must know: ports, addresses, identifiers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

from srvmod.local.errors import LocalError

BRIDGE = "srvmod0"
BRIDGE_ADDRESS = "10.88.0.1"
BRIDGE_PREFIX_LENGTH = 16
SERVICE_CIDR = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
API_PORT = 443
AWS_PORT = 5000
REGION = "us-east-1"
CLUSTER_NAME = "srvmod-local"
REAL_NODE_SLOTS = 2
AWS_KEY = "srvmod-local"
"""Access key and secret of the simulated account; it checks neither."""


OTHER_ACCOUNTS = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN")
"""Variables that name an account of the user's own, which the simulation's must not be mixed with."""


def aws_environment(url: str) -> dict[str, str]:
    """Variables that lead any AWS SDK to the simulated AWS at `url`, past any proxy."""
    direct = ",".join(filter(None, (os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), urlsplit(url).hostname)))
    return {
        "NO_PROXY": direct,
        "no_proxy": direct,
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": AWS_KEY,
        "AWS_SECRET_ACCESS_KEY": AWS_KEY,
        "AWS_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


@dataclass(frozen=True)
class Facts:
    """Ports are on the host's loopback; `supervisor_pid` is the host's pid of the namespace holder."""

    stack_id: str
    api_port: int
    aws_port: int
    endpoint_port: int
    supervisor_pid: int
    supervisor_started: str

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.endpoint_port}"

    @property
    def aws_url(self) -> str:
        return f"http://127.0.0.1:{self.aws_port}"

    def save(self, file: Path) -> None:
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(self), indent=1))
        part.replace(file)

    def alive(self) -> bool:
        """Whether the process that holds the namespaces is still the one that `up` started."""
        return process_start(self.supervisor_pid) == self.supervisor_started


def load(file: Path) -> Facts | None:
    """The record of the stack, or None where there is none. Raises LocalError for one that can't be understood."""
    try:
        return Facts(**json.loads(file.read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, TypeError) as error:
        raise LocalError(f"{file} is no record of a stack: {error}", "`srvmod local down` clears it") from error


def process_start(pid: int) -> str:
    """Boot-relative start time of a process (guards against reused pids), or "" when it doesn't exist."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] == "Z" else fields[19]


def await_end(starts: Mapping[int, str], timeout_seconds: float) -> list[int]:
    """Wait until the processes (pid to start time) are gone; returns those that aren't after the time-out."""
    deadline = time.monotonic() + timeout_seconds
    while True:
        left = [pid for pid, start in starts.items() if start and process_start(pid) == start]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.1)


def inner_pids(supervisor_pid: int) -> dict[int, int]:
    """Pids inside the stack's pid namespace → pids that the host sees, of processes that haven't ended."""
    found: dict[int, int] = {}
    try:
        namespace = Path(f"/proc/{supervisor_pid}/ns/pid_for_children").readlink()
        if namespace == Path("/proc/self/ns/pid").readlink():
            return found  # it made none
    except OSError:
        return found
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if (entry / "ns/pid").readlink() != namespace:
                continue
            status = (entry / "status").read_text()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
        fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        if not fields["State"].strip().startswith("Z"):
            found[int(fields["NSpid"].split()[-1])] = int(entry.name)
    return found
