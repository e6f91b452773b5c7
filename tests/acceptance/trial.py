"""A control plane with a node launcher in namespaces of its own, for tests of the nodes alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from srvmod.infra.labels import POOL_LABEL
from srvmod.local import nodes
from srvmod.local.facts import AWS_PORT, BRIDGE_ADDRESS, inner_pids
from srvmod.local.nodes.hardware import KERNEL_SETTINGS
from srvmod.local.paths import REPO, State
from srvmod.tools import ensure, kubectl
from tests.acceptance.conftest import eventually


def kernel_settings() -> dict[str, str]:
    return {name: Path("/proc/sys", name).read_text() for name in KERNEL_SETTINGS if Path("/proc/sys", name).exists()}


SETTINGS_BEFORE = kernel_settings()


AWS_URL = f"http://{BRIDGE_ADDRESS}:{AWS_PORT}"
UPLOAD = """\
import boto3, hashlib, json
files = {"config.json": b"{}", "model.safetensors": b"weights" * 1000}
entries = [
    {"path": path, "sizeBytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    for path, content in files.items()
]
manifest = {"schema": 1, "revision": "r1", "files": entries}
key = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
s3 = boto3.client("s3", endpoint_url="@AWS@", region_name="us-east-1", **key)
s3.create_bucket(Bucket="weights")
for path, content in files.items():
    s3.put_object(Bucket="weights", Key=f"m/r1/{path}", Body=content)
s3.put_object(Bucket="weights", Key="m/r1/manifest.json", Body=json.dumps(manifest).encode())
"""


@dataclass(frozen=True)
class Trial:
    """A control plane with a node launcher in namespaces of its own."""

    state: State
    holder: int

    def enter(self) -> list[str]:
        """The command that runs another one inside."""
        children = Path(f"/proc/{self.holder}/task/{self.holder}/children").read_text().split()
        assert children, f"the trial isn't running; see {self.state.logs / 'trial.log'}"
        return ["nsenter", f"--target={children[0]}", "--mount", "--net", "--pid"]

    def kubectl(self, *arguments: str, stdin: str | None = None, check: bool = True) -> str:
        config = f"--kubeconfig={self.state.pki / 'admin.kubeconfig'}"
        answer = subprocess.run(
            [*self.enter(), str(kubectl()), config, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        if check and answer.returncode != 0:
            raise AssertionError(f"kubectl {' '.join(arguments)}: {answer.stderr}")
        return answer.stdout

    def upload_weights(self) -> None:
        """Puts two small files and their manifest into the simulated account, as revision r1 under m/."""
        script = UPLOAD.replace("@AWS@", AWS_URL)
        answer = subprocess.run(
            [*self.enter(), sys.executable, "-c", script], capture_output=True, text=True, check=False
        )
        assert answer.returncode == 0, answer.stderr

    def apply(self, *objects: dict[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def get(self, *arguments: str) -> dict[str, Any]:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def phase(self, pod: str) -> str:
        """`Running`, or the reason for which the kubelet refused it; empty while undecided."""
        status = self.get("pod", pod)["status"]
        return status.get("reason", "") if status["phase"] == "Failed" else status["phase"].replace("Pending", "")

    def host_pid(self, node: str, process: str) -> int | None:
        pid = nodes.processes(self.state.root).get(node, {}).get(process)
        return inner_pids(self.holder).get(pid) if pid else None

    def log(self, name: str) -> str:
        """What the component has written so far."""
        file = self.state.logs / f"{name}.log"
        return file.read_text() if file.exists() else ""


def node(name: str, **spec: Any) -> dict[str, Any]:
    """A Node as Karpenter's kwok build writes it."""
    labels = {
        "karpenter.sh/nodepool": "p5-tp4",
        POOL_LABEL: "p5-tp4",
        "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "kwok.x-k8s.io/node": "fake",
    }
    metadata = {"name": name, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}}
    provider = f"kwok-aws:///us-east-1a/i-{name}"
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"providerID": provider, **spec}}


def is_ready(trial: Trial, name: str) -> bool:
    status = trial.get("node", name).get("status", {})
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", []))
    return ready and status.get("allocatable", {}).get("nvidia.com/gpu") == "8"


def run_trial() -> Iterator[Trial]:
    """Starts a trial, yields it, and ends it."""
    if os.geteuid() != 0:
        pytest.exit("acceptance tests need root: namespaces, mounts and cgroups of the nodes", returncode=2)
    base = Path(os.environ.get("SRVMOD_TEST_STATE", REPO / ".srvmod" / "test"))
    state = State(base.with_name(base.name + "-nodes"))
    assert nodes.check_host(state.root) == []
    nodes.cleanup(state.root)
    subprocess.run(["rm", "-rf", "--one-file-system", str(state.live)], check=True)
    state.make()
    nodes.prepare(state.root, ensure(["crane", "envoy-gateway"]))
    command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc"]
    with (state.logs / "trial.log").open("w") as log:
        process = subprocess.Popen(
            [*command, sys.executable, "-m", "tests.acceptance.node_trial", str(state.root)],
            cwd=REPO,
            env={**os.environ, "SRVMOD_LOCAL_API_URL": "https://127.0.0.1:1"},
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    found = Trial(state, process.pid)
    try:
        eventually("the API server answers", 120, lambda: "ok" in found.kubectl("get", "--raw", "/readyz"))
        eventually("both slots are ready", 240, lambda: found.log("node-launcher").count(" is ready after ") >= 2)
        yield found
    finally:
        process.kill()
        process.wait()
        nodes.cleanup(state.root)
