"""Files that configure a node."""

from __future__ import annotations

import ipaddress
import json
import tomllib
from pathlib import Path

import pytest

from srvmod.local.nodes import config
from srvmod.local.nodes.paths import Slot, cgroup_root
from srvmod.local.paths import State

STATE = State(Path("/state"))


def test_slots_share_nothing() -> None:
    slots = [Slot(STATE, number) for number in range(3)]
    for pick in (
        lambda s: s.address,
        lambda s: s.cgroup,
        lambda s: s.pod_range,
        lambda s: s.nvme,
        lambda s: s.containerd,
    ):
        assert len({pick(slot) for slot in slots}) == len(slots)


def test_a_slot_number_out_of_range_is_named() -> None:
    with pytest.raises(ValueError, match="slot 8: allowed are 0 to 7"):
        Slot(STATE, 8)


def test_two_checkouts_have_two_cgroups() -> None:
    assert cgroup_root(STATE) != cgroup_root(State(Path("/other")))


def test_pod_addresses_lie_in_the_bridges_network_and_apart_from_node_addresses() -> None:
    slot = Slot(STATE, 1)
    conflist = json.loads(config.cni_conflist(slot))
    (bridge,) = conflist["plugins"]
    ((found,),) = bridge["ipam"]["ranges"]
    network = ipaddress.ip_network(found["subnet"])
    for address in (found["rangeStart"], found["rangeEnd"], found["gateway"], slot.address):
        assert ipaddress.ip_address(address) in network
    first, last = (ipaddress.ip_address(found[key]) for key in ("rangeStart", "rangeEnd"))
    assert not first <= ipaddress.ip_address(slot.address) <= last


def test_containerd_reads_its_configuration() -> None:
    found = tomllib.loads(config.containerd_toml(Slot(STATE, 0), Path("/bin/runc"), Path("/cni")))
    images = found["plugins"]["io.containerd.cri.v1.images"]
    assert images["pinned_images"]["sandbox"] == config.PAUSE_IMAGE
    runtime = found["plugins"]["io.containerd.cri.v1.runtime"]
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/bin/runc"


def kubelet(user: dict[str, object]) -> dict[str, object]:
    return config.kubelet_configuration(Slot(STATE, 0), Path("/ca"), Path("/crt"), Path("/key"), user)


def test_the_pools_settings_reach_the_kubelet_but_dont_open_it() -> None:
    found = kubelet({"maxPods": 60, "topologyManagerPolicy": "single-numa-node"})
    assert found["maxPods"] == 60
    assert found["topologyManagerPolicy"] == "single-numa-node"
    assert found["authentication"]["anonymous"] == {"enabled": False}  # type: ignore[index]
    assert found["authorization"] == {"mode": "Webhook"}


def test_memory_eviction_is_the_pools_and_disk_eviction_this_machines() -> None:
    found = kubelet({"evictionHard": {"memory.available": "1Gi", "nodefs.available": "10%"}})
    assert found["evictionHard"] == {
        "memory.available": "1Gi",
        "nodefs.available": "500Mi",
        "imagefs.available": "500Mi",
    }


def test_every_setting_of_ours_is_guarded_from_user_data() -> None:
    """What `kubelet_configuration` writes after the pool's settings must be named in OURS, or be one of few others."""
    written = set(kubelet({})) - {
        "evictionHard",  # merged
        "nodeStatusUpdateFrequency",
        "registerNode",
        "podLogsDir",
        "failCgroupV1",
        "failSwapOn",
        "oomScoreAdj",
        "maxOpenFiles",
        "cgroupsPerQOS",
        "shutdownGracePeriod",
        "shutdownGracePeriodCriticalPods",
    }
    assert written <= config.OURS
