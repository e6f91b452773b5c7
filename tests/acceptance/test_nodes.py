"""The nodes alone: real kubelets on pretended p5 hardware, with Node objects as Karpenter makes them."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from srvmod.contract.account_needs import MODEL_FILES
from srvmod.infra.serving.documents.weight_cache import (
    WeightCache,
    cluster_role,
    cluster_role_binding,
    daemon_set,
    role,
    role_binding,
    service_account,
)
from srvmod.local import nodes
from srvmod.local.facts import inner_pids
from srvmod.local.nodes.paths import Slot, cgroup_root
from srvmod.tools import karpenter_crds
from tests.acceptance.conftest import eventually
from tests.acceptance.test_islands import gpu_pod
from tests.acceptance.trial import AWS_URL, SETTINGS_BEFORE, Trial, is_ready, kernel_settings, node, run_trial

pytestmark = pytest.mark.acceptance

USER_DATA = """\
apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  kubelet:
    config: {cpuManagerPolicy: static, topologyManagerPolicy: single-numa-node, topologyManagerScope: pod}
"""


@pytest.fixture(scope="module")
def trial() -> Iterator[Trial]:
    yield from run_trial()


@pytest.fixture(scope="module")
def two_nodes(trial: Trial) -> tuple[str, str]:
    """Two real nodes; the time until they are ready is bounded, since a warm start has to fit in 90 s."""
    names = ("trial-a", "trial-b")
    started = time.monotonic()
    trial.apply(*(node(name) for name in names))
    for name in names:
        eventually(f"{name} is ready", 60, lambda name=name: is_ready(trial, name))
    print(f"two nodes ready after {time.monotonic() - started:.1f} s")
    return names


def test_a_node_is_a_p5_in_the_clusters_eyes(trial: Trial, two_nodes: tuple[str, str]) -> None:
    for name in two_nodes:
        found = trial.get("node", name)
        assert found["status"]["capacity"]["cpu"] == "192"
        assert found["status"]["capacity"]["memory"] == "2Ti"
        assert found["spec"]["providerID"] == f"kwok-aws:///us-east-1a/i-{name}"
        assert "srvmod.dev/pretended" not in found["metadata"]["annotations"]


def test_the_machines_own_settings_stay_untouched(two_nodes: tuple[str, str]) -> None:
    """A kubelet sets kernel parameters when it starts; they must be the pretended machine's."""
    assert two_nodes
    assert kernel_settings() == SETTINGS_BEFORE


def test_a_third_node_is_pretended(trial: Trial, two_nodes: tuple[str, str]) -> None:
    assert two_nodes
    trial.apply(node("trial-c"))
    try:
        annotations = ("node", "trial-c", "-o", "jsonpath={.metadata.annotations}")
        eventually("it is marked", 20, lambda: "srvmod.dev/pretended" in trial.kubectl("get", *annotations))
        assert "trial-c" not in nodes.processes(trial.state.root)
    finally:
        trial.kubectl("delete", "node", "trial-c")


@pytest.mark.parametrize("process", ["kubelet", "containerd", "gpu-plugin"])
def test_a_killed_process_comes_back_and_the_pods_go_on(trial: Trial, two_nodes: tuple[str, str], process: str) -> None:
    name, pod = two_nodes[0], f"kept-{process}"
    trial.apply(gpu_pod(pod, name, 4))
    eventually("the pod runs", 60, lambda: trial.phase(pod) == "Running")
    uid = trial.get("pod", pod)["status"]["containerStatuses"][0]["containerID"]
    before = trial.host_pid(name, process)
    assert before is not None
    os.kill(before, signal.SIGKILL)
    eventually("the process is missed", 10, lambda: trial.host_pid(name, process) is None)
    eventually("it runs again", 30, lambda: trial.host_pid(name, process) not in (None, before))
    eventually("the node is ready", 60, lambda: is_ready(trial, name))
    assert trial.get("pod", pod)["status"]["containerStatuses"][0]["containerID"] == uid
    # the device plugin is registered again: the other island can still be given out
    trial.apply(gpu_pod(f"{pod}-other", name, 4))
    eventually("another pod runs", 60, lambda: trial.phase(f"{pod}-other") == "Running")
    gpus = [trial.get("pod", p)["metadata"].get("annotations", {}) for p in (pod, f"{pod}-other")]
    trial.kubectl("delete", "pod", pod, f"{pod}-other", "--force", "--grace-period=0")
    assert {g.get("srvmod.dev/gpus") for g in gpus} <= {"0,1,2,3", "4,5,6,7", None}
    eventually(
        "the GPUs are free", 60, lambda: not trial.get("pods", f"--field-selector=spec.nodeName={name}")["items"]
    )


def test_logs_and_exec_reach_the_kubelet(trial: Trial, two_nodes: tuple[str, str]) -> None:
    pod = gpu_pod("talks", two_nodes[1], 1)
    pod["spec"]["containers"][0] |= {"image": "docker.io/srvmod/engine:local", "command": ["/bin/sh", "-c"]}
    pod["spec"]["containers"][0]["args"] = ["echo hello from $NVIDIA_VISIBLE_DEVICES; exec sleep 600"]
    trial.apply(pod)
    eventually("it runs", 60, lambda: trial.phase("talks") == "Running")
    assert "hello from GPU-" in eventually("it logs", 20, lambda: trial.kubectl("logs", "talks"))
    assert trial.kubectl("exec", "talks", "--", "printenv", "SRVMOD_PRETEND_ROOT").strip() == "/run/srvmod/p5"
    islands = trial.kubectl(
        "exec", "talks", "--", "/bin/sh", "-c", "cat /run/srvmod/p5/sys/bus/pci/devices/*/numa_node"
    )
    assert islands.split() == ["0"] * 4 + ["1"] * 4
    trial.kubectl("delete", "pod", "talks", "--force", "--grace-period=0")


def test_a_deleted_node_switches_its_machine_off_and_frees_the_slot(trial: Trial, two_nodes: tuple[str, str]) -> None:
    gone = two_nodes[1]
    trial.apply(gpu_pod("on-it", gone, 4))
    eventually("the pod runs", 60, lambda: trial.phase("on-it") == "Running")
    number = next(n for n in range(2) if json.loads(Slot(trial.state, n).record.read_text())["name"] == gone)
    trial.kubectl("delete", "node", gone)
    eventually("its processes end", 30, lambda: gone not in nodes.processes(trial.state.root))
    leases = Slot(trial.state, number).cni / "networks" / "srvmod"
    assert not list(leases.glob("10.*"))
    trial.kubectl("delete", "pod", "on-it", "--force", "--grace-period=0", check=False)
    trial.apply(node("trial-next"))
    eventually("the next node takes the slot", 60, lambda: is_ready(trial, "trial-next"))
    assert json.loads(Slot(trial.state, number).record.read_text())["name"] == "trial-next"
    trial.kubectl("delete", "node", "trial-next")


def test_the_kubelet_runs_with_the_pools_user_data(trial: Trial, two_nodes: tuple[str, str]) -> None:
    """The settings come from the EC2NodeClass that the program declares; what can't work here is named."""
    trial.kubectl("apply", "-f", ",".join(map(str, karpenter_crds())))
    trial.kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
    trial.kubectl("apply", "--validate=false", "-f", "-", stdin=yaml.safe_dump(node_class()))
    claim = node_claim("trial-claim")
    trial.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(claim))
    status = {"status": {"providerID": "kwok-aws:///us-east-1a/i-trial-claimed"}}
    trial.kubectl("patch", "nodeclaim", "trial-claim", "--subresource=status", "--type=merge", "-p", json.dumps(status))
    trial.apply(node("trial-claimed"))
    try:
        eventually("it is ready", 60, lambda: is_ready(trial, "trial-claimed"))
        config = json.loads(trial.kubectl("get", "--raw", "/api/v1/nodes/trial-claimed/proxy/configz"))["kubeletconfig"]
        assert config["topologyManagerPolicy"] == "single-numa-node"
        assert config["maxPods"] == 60
        assert config.get("cpuManagerPolicy", "none") == "none"
        annotations = trial.get("node", "trial-claimed")["metadata"]["annotations"]
        assert annotations["srvmod.dev/kubelet-left-out"] == "cpuManagerPolicy"
    finally:
        trial.kubectl("delete", "node", "trial-claimed")
        trial.kubectl("delete", "nodeclaim", "trial-claim", "--wait=false", check=False)


def node_class() -> dict[str, Any]:
    terms = [{"id": "subnet-00000000000000001"}]
    return {
        "apiVersion": "karpenter.k8s.aws/v1",
        "kind": "EC2NodeClass",
        "metadata": {"name": "trial"},
        "spec": {
            "role": "trial",
            "amiFamily": "AL2023",
            "amiSelectorTerms": [{"id": "ami-00000000000000001"}],
            "subnetSelectorTerms": terms,
            "securityGroupSelectorTerms": [{"id": "sg-00000000000000001"}],
            "kubelet": {"maxPods": 60},
            "userData": USER_DATA,
        },
    }


def node_claim(name: str) -> dict[str, Any]:
    reference = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "trial"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": name},
        "spec": {"nodeClassRef": reference, "requirements": []},
    }


def test_a_pretended_node_opens_only_after_its_weights_are_verified(trial: Trial, two_nodes: tuple[str, str]) -> None:
    """The agent is the real one; first the weights are missing, then they come."""
    assert two_nodes
    image = "docker.io/srvmod/weight-cache:local"
    cache = WeightCache("serving", "p5-tp4", image, "Never", "weights", "m", "r1", "us-east-1", MODEL_FILES, AWS_URL)
    trial.kubectl("create", "namespace", "serving")
    trial.apply(service_account(cache), cluster_role(), cluster_role_binding(cache), role(cache), role_binding(cache))
    trial.apply(daemon_set(cache))
    fillers = [node(f"filler-{n}") for n in range(2)]  # whichever slots are free
    trial.apply(*fillers)
    cold = {"key": "srvmod.dev/weights-cold", "value": "true", "effect": "NoSchedule"}
    eventually("the slots are taken", 60, lambda: len(nodes.processes(trial.state.root)) == 2)
    trial.apply(node("trial-far", taints=[cold]))
    try:
        eventually("kwok makes it ready", 60, lambda: is_up(trial, "trial-far"))
        eventually("the agent looks for weights", 60, lambda: "manifest" in trial.log("weight-cache-trial-far"))
        assert cold["key"] in taints(trial, "trial-far")
        trial.upload_weights()
        eventually("the taint is lifted", 90, lambda: cold["key"] not in taints(trial, "trial-far"))
        assert (trial.state.live / "nodes/pretended/trial-far/models/r1/READY").exists()
        assert (trial.state.run / "weight-cache-trial-far.pid").exists(), "it stays, as the DaemonSet's pod does"
    finally:
        trial.kubectl("delete", "node", "trial-far", *(f["metadata"]["name"] for f in fillers), check=False)
    eventually("the agent ends", 20, lambda: not (trial.state.run / "weight-cache-trial-far.pid").exists())
    eventually("its folder goes", 20, lambda: not (trial.state.live / "nodes/pretended/trial-far").exists())


def taints(trial: Trial, name: str) -> set[str]:
    return {taint["key"] for taint in trial.get("node", name)["spec"].get("taints", [])}


def is_up(trial: Trial, name: str) -> bool:
    conditions = trial.get("node", name).get("status", {}).get("conditions", [])
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def test_nothing_is_left_when_the_namespaces_end(trial: Trial, two_nodes: tuple[str, str]) -> None:
    """Last: it ends the trial."""
    assert two_nodes
    os.kill(trial.holder, signal.SIGKILL)
    eventually("its processes end", 20, lambda: not inner_pids(trial.holder))
    nodes.cleanup(trial.state.root)
    name = cgroup_root(trial.state).strip("/")
    assert not list(Path("/sys/fs/cgroup").glob(f"**/{name}"))
    assert str(trial.state.root) not in Path("/proc/mounts").read_text()
    assert not Path("/run/containerd").exists() or not (Path("/run/containerd") / "containerd.sock").exists()
    nodes.cleanup(trial.state.root)
