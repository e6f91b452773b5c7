"""What the launcher reads back: the kubelet's checkpoint, records, the weight cache's settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from srvmod.local import nodes
from srvmod.local.nodes.allocations import CHECKPOINT, gpus_by_pod
from srvmod.local.nodes.paths import Slot
from srvmod.local.nodes.pretended import environment
from srvmod.local.nodes.view import components
from srvmod.local.nodes.without_seccomp import strip
from srvmod.local.paths import State


def test_gpus_of_a_pod_are_sorted_over_its_containers(tmp_path: Path) -> None:
    entries = [
        {"PodUID": "p", "ContainerName": "a", "ResourceName": "nvidia.com/gpu", "DeviceIDs": {"1": ["GPU-5", "GPU-4"]}},
        {"PodUID": "p", "ContainerName": "b", "ResourceName": "nvidia.com/gpu", "DeviceIDs": {"0": ["GPU-0"]}},
        {"PodUID": "q", "ContainerName": "c", "ResourceName": "example.com/nic", "DeviceIDs": {"0": ["N-0"]}},
    ]
    file = tmp_path / CHECKPOINT
    file.parent.mkdir()
    file.write_text(json.dumps({"Data": {"PodDeviceEntries": entries, "RegisteredDevices": {}}, "Checksum": 1}))
    assert gpus_by_pod(tmp_path) == {"p": [0, 4, 5]}


def test_before_the_first_pod_there_are_none(tmp_path: Path) -> None:
    assert gpus_by_pod(tmp_path) == {}


def test_processes_of_the_nodes_that_hold_slots(tmp_path: Path) -> None:
    state = State(tmp_path)
    slot = Slot(state, 1)
    slot.root.mkdir(parents=True)
    slot.record.write_text(json.dumps({"name": "kwok-a", "uid": "u", "kubelet": {}}))
    state.run.mkdir(parents=True)
    (state.run / "kubelet-1.pid").write_text("42\n")
    running = {"namespace": None, "containerd": None, "kubelet": 42, "gpu-plugin": None}
    assert nodes.processes(tmp_path) == {"kwok-a": running}


def test_the_agent_gets_the_pods_environment() -> None:
    pod = {
        "containers": [
            {
                "env": [
                    {"name": "BUCKET", "value": "b"},
                    {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
                ]
            }
        ]
    }
    assert environment(pod, "kwok-a") == {"BUCKET": "b", "NODE_NAME": "kwok-a"}


def test_only_the_seccomp_profile_is_taken_out(tmp_path: Path) -> None:
    config = {"process": {"args": ["x"]}, "linux": {"seccomp": {"defaultAction": "SCMP_ACT_ERRNO"}, "namespaces": []}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    strip(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text()) == {
        "process": {"args": ["x"]},
        "linux": {"namespaces": []},
    }


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/tools/kubelet\0--config=x\0", {"name": "kubelet@kwok-a", "pid": 1042, "healthy": True, "problem": ""}),
        ("/bin/sleep\0kubelet-1\0",
         {"name": "kubelet@kwok-a", "pid": None, "healthy": False, "problem": "not running"}),
    ],
)  # fmt: skip
def test_a_pid_that_another_program_has_now_is_no_process_of_the_node(
    command: str, shown: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = State(tmp_path)
    slot = Slot(state, 1)
    slot.root.mkdir(parents=True)
    slot.record.write_text(json.dumps({"name": "kwok-a", "uid": "u", "kubelet": {}}))
    state.run.mkdir(parents=True)
    (state.run / "kubelet-1.pid").write_text("42\n")
    monkeypatch.setattr(Path, "read_bytes", lambda self: command.encode() if self.parts[2] == "1042" else b"")
    found = components(tmp_path, {42: 1042})
    assert shown in found
    assert len(found) == 4
