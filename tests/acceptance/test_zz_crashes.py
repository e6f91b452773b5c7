"""What dies is named by `status`, mended by `up`, and gone after `down`. Last: it hurts the stack of the others."""

from __future__ import annotations

import json
import os
import signal
import time
from typing import Any

import pytest

from srvmod.local.facts import process_start
from tests.acceptance.conftest import Stack, eventually
from tests.acceptance.machine import left_behind, processes_of

pytestmark = pytest.mark.acceptance

CONTROL_PLANE = ("kube-scheduler", "kube-controller-manager", "karpenter", "envoy-gateway", "coredns", "kwok",
                 "load-balancer", "node-launcher", "simulated-aws", "simulated-scaler", "kube-apiserver",
                 "etcd")  # fmt: skip
NODE = ("kubelet", "containerd", "gpu-plugin", "namespace")
SHORT = ("karpenter", "simulated-aws", "kubelet")
FULL = bool(os.environ.get("SRVMOD_FULL"))


def component(stack: Stack, name: str) -> dict[str, Any]:
    """By its name, or that of its kind on the first real node."""
    found = [c for c in stack.status()["components"] if c["name"] == name or c["name"].startswith(f"{name}@")]
    assert found, f"no component {name}"
    return found[0]


def kill(pid: int) -> None:
    started = process_start(pid)
    os.kill(pid, signal.SIGKILL)
    eventually(f"process {pid} ends", 5, lambda: process_start(pid) != started)


@pytest.mark.parametrize("name", (*CONTROL_PLANE, *NODE) if FULL else SHORT)
def test_a_killed_component_is_named_and_up_mends_it(stack: Stack, name: str) -> None:
    pid = int(component(stack, name)["pid"])
    launcher = int(component(stack, "node-launcher")["pid"])
    if name in NODE:
        os.kill(launcher, signal.SIGSTOP)  # or it has started it again before anybody has asked
    kill(pid)
    found = component(stack, name)
    assert found["healthy"] is False, found
    assert found["pid"] is None
    assert ("not running" if name in NODE else "killed by SIGKILL") in str(found["problem"]), found
    told = stack.srvmod("local", "status", check=False)
    assert told.returncode == 1
    if name in NODE:
        os.kill(launcher, signal.SIGCONT)
    began = time.monotonic()
    result = stack.srvmod("local", "up", "--json")
    print(f"{name}: mended in {time.monotonic() - began:.1f} s")
    mended = json.loads(result.stdout)
    assert mended["completion"]["tokens"] == 24
    assert all(c["healthy"] for c in mended["components"]), mended["components"]
    after = component(stack, name)
    assert after["healthy"], after
    assert after["pid"] != pid


@pytest.mark.skipif(not FULL, reason="waits a minute; set SRVMOD_FULL=1")
def test_a_component_that_hangs_is_named_and_up_mends_it(stack: Stack) -> None:
    pid = int(component(stack, "kube-scheduler")["pid"])
    os.kill(pid, signal.SIGSTOP)
    found = component(stack, "kube-scheduler")
    assert found["healthy"] is False
    assert "timed out" in found["problem"]
    stack.srvmod("local", "up")
    after = component(stack, "kube-scheduler")
    assert after["healthy"]
    assert after["pid"] != pid


def test_an_account_that_cannot_be_played_again_is_named(stack: Stack) -> None:
    """A journal whose first request once ended otherwise: `status` and `up` say what is lost and what to do."""
    journal = stack.state / "local" / "aws.journal"
    content = journal.read_bytes()
    assert b'"status": 200' in content.splitlines()[0]
    journal.write_bytes(content.replace(b'"status": 200', b'"status": 202', 1))
    kill(int(component(stack, "simulated-aws")["pid"]))
    result = stack.srvmod("local", "up", check=False)
    assert result.returncode == 1
    assert "the account's objects are lost: request 1 of the journal" in result.stderr
    assert "`srvmod local down`, then `srvmod local up`" in result.stderr
    found = component(stack, "simulated-aws")
    assert found["healthy"] is False
    assert "request 1 of the journal" in found["problem"]
    told = stack.srvmod("local", "status", check=False)
    assert told.returncode == 1
    assert "objects are lost" in " ".join(told.stdout.split())


def test_a_dead_supervisor_is_told_and_down_leaves_nothing(stack: Stack) -> None:
    kill(int(component(stack, "supervisor")["pid"]))
    eventually("the namespace ends", 20, lambda: not stack.status()["running"])
    result = stack.srvmod("local", "status", check=False)
    assert result.returncode == 3
    assert "srvmod local up" in result.stdout
    stack.srvmod("local", "down")
    assert not processes_of(stack.state)
    assert not left_behind(stack.machine_before, stack.state)
    assert not (stack.state / "local").exists()
    assert stack.srvmod("local", "status", check=False).returncode == 3
