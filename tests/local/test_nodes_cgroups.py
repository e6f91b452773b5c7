"""Cgroups of both versions, on folders that look like them."""

from __future__ import annotations

from pathlib import Path

import pytest

from srvmod.local.nodes import cgroups


@pytest.fixture
def v1(tmp_path: Path) -> Path:
    for name in ("cpu", "cpuset", "memory", "pids", "systemd"):
        tree = tmp_path / name
        tree.mkdir()
        (tree / "tasks").touch()
        (tree / "cgroup.procs").touch()
    return tmp_path


@pytest.fixture
def v2(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpu cpuset memory pids io\n")
    (tmp_path / "cgroup.subtree_control").touch()
    return tmp_path


def test_versions(v1: Path) -> None:
    assert cgroups.version(v1) == 1
    assert cgroups.missing_controllers(v1) == frozenset()
    (v1 / "pids" / "tasks").unlink()
    assert cgroups.missing_controllers(v1) == {"pids"}


def test_version_two(v2: Path) -> None:
    assert cgroups.version(v2) == 2
    assert cgroups.missing_controllers(v2) == frozenset()
    (v2 / "cgroup.controllers").write_text("cpu memory pids\n")
    assert cgroups.missing_controllers(v2) == {"cpuset"}


def test_a_cgroup_is_made_in_every_tree_and_removed_again(v1: Path) -> None:
    cgroups.create("/srvmod-x/slot0/kubepods", v1)
    made = sorted(path.relative_to(v1).parts[0] for path in v1.rglob("kubepods"))
    assert made == ["cpu", "cpuset", "memory", "pids", "systemd"]
    assert cgroups.remove("/srvmod-x", v1) == []
    assert not list(v1.rglob("srvmod-x"))
    assert cgroups.remove("/srvmod-x", v1) == []


def test_what_cant_be_removed_is_returned(v1: Path) -> None:
    cgroups.create("/srvmod-x", v1)
    (v1 / "cpu" / "srvmod-x" / "held").touch()  # on a real cgroup file system: a process
    assert cgroups.remove("/srvmod-x", v1, patience=0) == [v1 / "cpu" / "srvmod-x"]
