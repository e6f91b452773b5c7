"""An engine starts only on one whole island."""

import pytest
from srvmod_engine.errors import IslandError
from srvmod_engine.islands import check_island, parse_topology


@pytest.mark.parametrize("ids", ["GPU-0,GPU-1,GPU-2,GPU-3", "GPU-7,GPU-6,GPU-5,GPU-4"])
def test_a_whole_island_is_fine(ids: str) -> None:
    assert set(check_island({"NVIDIA_VISIBLE_DEVICES": ids}, 4)) == set(ids.split(","))


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        ("", "no GPU was allocated"),
        ("all", "'all' is not one"),
        ("GPU-0,GPU-1,GPU-2,GPU-9", "GPU-9"),
        ("GPU-0,GPU-1,GPU-2,GPU-4", r"crosses islands \[0, 1\].*single-numa-node"),
        ("GPU-0,GPU-1,GPU-2", "3 GPUs for --tensor-parallel-size 4"),
        ("GPU-0,GPU-1,GPU-2,GPU-3,GPU-4,GPU-5", "6 GPUs for"),
        ("GPU-0,GPU-0,GPU-1,GPU-2", "named twice"),
    ],
)
def test_anything_else_is_refused(ids: str, words: str) -> None:
    with pytest.raises(IslandError, match=words):
        check_island({"NVIDIA_VISIBLE_DEVICES": ids}, 4)


def test_another_topology_can_be_pretended_and_the_check_can_be_switched_off() -> None:
    env = {"NVIDIA_VISIBLE_DEVICES": "a,b", "SRVMOD_SIM_ISLANDS": "a,c;b,d"}
    with pytest.raises(IslandError, match="crosses"):
        check_island(env, 2)
    assert check_island({**env, "NVIDIA_VISIBLE_DEVICES": "d,b"}, 2) == ("b", "d")
    assert check_island({"SRVMOD_SIM_ISLANDS": "none"}, 4) == ()


@pytest.mark.parametrize("text", [";", "a,b;b,c"])
def test_a_bad_topology_is_refused(text: str) -> None:
    with pytest.raises(IslandError, match="SRVMOD_SIM_ISLANDS"):
        parse_topology(text)
