"""The pretended p5.48xlarge."""

from __future__ import annotations

from pathlib import Path

import pytest

from srvmod.local.nodes import hardware


@pytest.fixture(scope="module")
def p5(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("p5")
    hardware.write_p5(folder)
    return folder


def parse_cpus(text: str) -> set[int]:
    found: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def test_cpus_and_their_numa_nodes_agree_everywhere(p5: Path) -> None:
    lists = [parse_cpus((p5 / f"node/node{node}/cpulist").read_text()) for node in range(2)]
    assert [len(cpus) for cpus in lists] == [96, 96]
    assert lists[0] | lists[1] == set(range(192))
    for node, cpus in enumerate(lists):
        assert {int(path.name[3:]) for path in (p5 / f"node/node{node}").glob("cpu[0-9]*")} == cpus
        for cpu in cpus:
            assert int((p5 / f"cpu/cpu{cpu}/topology/physical_package_id").read_text()) == node


def test_two_threads_share_a_core(p5: Path) -> None:
    cores: dict[tuple[str, str], int] = {}
    for cpu in range(192):
        topology = p5 / f"cpu/cpu{cpu}/topology"
        key = ((topology / "physical_package_id").read_text(), (topology / "core_id").read_text())
        cores[key] = cores.get(key, 0) + 1
    assert set(cores.values()) == {2}
    assert len(cores) == 96


def test_memory_of_the_numa_nodes_adds_up(p5: Path) -> None:
    total = int((p5 / "meminfo").read_text().split()[1])
    parts = [int((p5 / f"node/node{node}/meminfo").read_text().split()[3]) for node in range(2)]
    assert total == sum(parts) == 2 * 1024**3


def test_gpus_hang_on_the_island_of_their_index(p5: Path) -> None:
    islands = []
    for address in hardware.GPU_ADDRESSES:
        islands.append(int((p5 / f"gpu/sys/bus/pci/devices/{address}/numa_node").read_text()))
        information = (p5 / f"gpu/proc/driver/nvidia/gpus/{address}/information").read_text()
        assert f"Device Minor: \t {len(islands) - 1}\n" in information
    assert islands == [0, 0, 0, 0, 1, 1, 1, 1]


def test_writing_again_changes_nothing(p5: Path) -> None:
    marked = p5 / "meminfo"
    before = marked.stat().st_mtime_ns
    hardware.write_p5(p5)
    assert marked.stat().st_mtime_ns == before
