"""What dies is named by `status`, mended by `up`, and gone after `down`. Last: it hurts the stack of the others."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from tests.acceptance.conftest import Stack, eventually

SINGLE_FAULTS = ("kube-scheduler", "kube-controller-manager", "karpenter", "envoy-gateway", "coredns", "kwok",
                 "load-balancer", "node-launcher", "simulated-aws", "kube-apiserver", "etcd")  # fmt: skip
SHORT = ("karpenter", "kube-apiserver", "node-launcher")


def component(stack: Stack, name: str) -> dict[str, object]:
    return next(c for c in stack.status()["components"] if c["name"] == name)


def test_each_killed_component_is_named_and_up_mends_it(stack: Stack) -> None:
    for name in SINGLE_FAULTS if os.environ.get("SRVMOD_FULL") else SHORT:
        os.kill(int(str(component(stack, name)["pid"])), signal.SIGKILL)
        found = component(stack, name)
        assert found["healthy"] is False, found
        assert "SIGKILL" in str(found["problem"]), found
        assert stack.srvmod("local", "status", check=False).returncode == 1
        stack.srvmod("local", "up")
        assert all(c["healthy"] for c in stack.status()["components"]), name


def machine() -> dict[str, set[str]]:
    """What a stack could leave behind on the machine."""
    mounts = {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
    groups = {str(p) for p in Path("/sys/fs/cgroup").rglob("*srvmod*")}
    links = set(os.listdir("/sys/class/net"))
    files = {
        path
        for path in ("/certs", "/mnt/k8s-disks", "/var/lib/kubelet", "/var/lib/cni", "/etc/cni")
        if Path(path).exists()
    }
    return {"mounts": mounts, "cgroups": groups, "interfaces": links, "files": files}


def stack_processes(state: Path) -> list[str]:
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [
        line for line in listed.splitlines() if str(state) in line and "pytest" not in line and "ps -eo" not in line
    ]


def test_a_dead_supervisor_is_told_and_down_leaves_nothing(stack: Stack) -> None:
    os.kill(int(str(component(stack, "supervisor")["pid"])), signal.SIGKILL)
    eventually("the namespace ends", 20, lambda: not stack.status()["running"])
    result = stack.srvmod("local", "status", check=False)
    assert result.returncode == 3
    assert "srvmod local up" in result.stdout
    stack.srvmod("local", "down")
    assert not stack_processes(stack.state)
    left = machine()
    assert not {m for m in left["mounts"] if ".srvmod" in m or str(stack.state) in m}
    assert not left["cgroups"]
    assert not {link for link in left["interfaces"] if link.startswith(("srvmod", "veth"))}
    assert not left["files"]
    assert not (stack.state / "local").exists()
    assert stack.srvmod("local", "status", check=False).returncode == 3
