"""Hardware and zones against EC2's own answers, as moto has recorded them."""

import gzip
import json
from pathlib import Path
from typing import Any

import moto.ec2
import pytest

from srvmod.contract import P5_48XLARGE, P5_ZONES, offers_p5, system_node
from srvmod.contract.system_nodes import GIB_PER_VCPU, MOST_PODS, VCPUS

RECORDED = Path(moto.ec2.__file__).parent / "resources"


def recorded(path: Path) -> Any:
    return json.loads(gzip.decompress(path.read_bytes()))


def test_p5_as_ec2_describes_it() -> None:
    described = recorded(RECORDED / "instance_types.json.gz")[P5_48XLARGE.name]
    gpus = described["GpuInfo"]["Gpus"][0]
    assert described["VCpuInfo"]["DefaultVCpus"] == P5_48XLARGE.vcpus
    assert described["VCpuInfo"]["DefaultThreadsPerCore"] == P5_48XLARGE.threads_per_core
    assert described["MemoryInfo"]["SizeInMiB"] == P5_48XLARGE.memory_mib
    assert (gpus["Name"], gpus["Count"]) == (P5_48XLARGE.gpu.name, P5_48XLARGE.gpus)
    assert gpus["MemoryInfo"]["SizeInMiB"] == P5_48XLARGE.gpu.memory_mib
    assert described["InstanceStorageInfo"]["TotalSizeInGB"] == P5_48XLARGE.nvme_gb
    assert described["InstanceStorageInfo"]["Disks"][0]["Count"] == P5_48XLARGE.nvme_disks
    assert described["NetworkInfo"]["EfaInfo"]["MaximumEfaInterfaces"] == P5_48XLARGE.efa_interfaces


@pytest.mark.parametrize("family", GIB_PER_VCPU)
def test_system_nodes_as_ec2_describes_them(family: str) -> None:
    every = recorded(RECORDED / "instance_types.json.gz")
    for size, vcpus in VCPUS.items():
        described = every[f"{family}.{size}"]
        network = described["NetworkInfo"]
        pods = network["MaximumNetworkInterfaces"] * (network["Ipv4AddressesPerInterface"] - 1) + 2
        assert described["VCpuInfo"]["DefaultVCpus"] == vcpus
        assert described["MemoryInfo"]["SizeInMiB"] == vcpus * GIB_PER_VCPU[family] * 1024
        assert described["ProcessorInfo"]["SupportedArchitectures"] == ["x86_64"]
        assert pods == MOST_PODS[size]


def test_pods_get_what_eks_leaves() -> None:
    node = system_node("m7i.xlarge")
    assert node is not None
    assert (node.cpu_millis, node.memory_mib) == (3920, 14571)
    assert system_node("m7i.2xlarge") is not None
    assert (system_node("m7g.xlarge"), system_node("m7i.metal-24xl")) == (None, None)


def test_zones_are_all_that_are_recorded() -> None:
    offered = {
        offering["Location"]
        for file in (RECORDED / "instance_type_offerings" / "availability-zone").iterdir()
        for offering in recorded(file)
        if offering["InstanceType"] == P5_48XLARGE.name
    }
    assert offered == {zone for zones in P5_ZONES.values() for zone in zones}


@pytest.mark.parametrize(("zone", "offers"), [("us-east-1a", True), ("us-west-1c", False), ("eu-west-1a", False)])
def test_offers_p5(zone: str, offers: bool) -> None:
    assert offers_p5(zone) is offers
