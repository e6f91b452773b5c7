"""What is said about a machine that can't hold nodes."""

from __future__ import annotations

import collections
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from srvmod.local.nodes import check_host, host
from srvmod.local.paths import State


@pytest.fixture(autouse=True)
def harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    """No trial: those start processes, and the acceptance tests make them."""
    monkeypatch.setattr(host, "_trials", lambda _: [])
    monkeypatch.setattr(os, "geteuid", lambda: 0)


def said(state: Path) -> str:
    return "\n".join(map(str, check_host(state)))


def test_no_root_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "not root" in said(tmp_path)
    assert "sudo" in said(tmp_path)


@pytest.fixture
def free(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets what the disk has free, in bytes."""
    figures = collections.namedtuple("figures", "total used free")
    return lambda amount: monkeypatch.setattr(shutil, "disk_usage", lambda _: figures(10**12, 10**12, amount))


def test_no_space_is_named_with_folder_and_amounts(tmp_path: Path, free: Callable[[int], None]) -> None:
    free(2 * 10**9)
    text = said(tmp_path / "not" / "there" / "yet")
    assert f"{tmp_path} has 2,000,000,000 bytes free, 6,000,000,000 bytes are needed" in text
    assert "free 4,000,000,000 bytes there" in text
    assert "SRVMOD_STATE" in text


def test_what_is_in_the_cache_already_needs_no_space_again(tmp_path: Path, free: Callable[[int], None]) -> None:
    file = State(tmp_path).cache / "nodes" / "layer"
    file.parent.mkdir(parents=True)
    file.write_bytes(os.urandom(1_000_000))
    free(host.NEEDED_BYTES - 1_000_000)
    assert not said(tmp_path)
    free(host.NEEDED_BYTES - 1_100_000)
    assert "bytes are needed" in said(tmp_path)


def test_a_full_cache_still_needs_some_space(
    tmp_path: Path, free: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "_used", lambda _: 10 * host.NEEDED_BYTES)
    free(host.LEAST_BYTES)
    assert not said(tmp_path)
    free(host.LEAST_BYTES - 1)
    assert "1,000,000,000 bytes are needed" in said(tmp_path)


def test_a_path_too_long_for_the_socket_is_named_with_the_longest_that_will_do(tmp_path: Path) -> None:
    base = f"{tmp_path}/"
    longest = host.SOCKET_PATH_BYTES - len("/local/run/supervisor.sock")
    assert not said(Path(base + "x" * (longest - len(base))))
    text = said(Path(base + "x" * (longest - len(base) + 1)))
    assert f"has {longest + 1} bytes, at most {longest} will do" in text
    assert "SRVMOD_STATE" in text


def test_a_file_in_place_of_the_state_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "state").touch()
    assert f"{tmp_path / 'state'} is a file" in said(tmp_path / "state")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    assert f"{tmp_path} can't be written to" in said(tmp_path / "state")


def test_a_missing_program_is_named_with_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name, *a, **k: None if name == "nsenter" else which(name, *a, **k))
    assert "`nsenter` isn't on PATH (needed for entering a node's namespace)" in said(tmp_path)
    assert "util-linux" in said(tmp_path)


def test_missing_controllers_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.cgroups, "missing_controllers", lambda: frozenset({"memory", "cpuset"}))
    assert "cgroup controllers missing: cpuset, memory" in said(tmp_path)


def test_a_missing_file_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_has_filesystem", lambda name: name != "overlay")
    assert "no overlay file system" in said(tmp_path)


def test_another_system_gets_one_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.sys, "platform", "darwin")
    assert len(check_host(tmp_path)) == 1


@pytest.mark.parametrize("name", host.NAMESPACES)
def test_a_kernel_without_a_namespace_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exists = Path.exists
    monkeypatch.setattr(Path, "exists", lambda self: str(self) != f"/proc/self/ns/{name}" and exists(self))
    assert f"the kernel has no {name} namespaces" in said(tmp_path)


def test_a_machine_without_its_cgroups_mounted_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host.cgroups, "MOUNT", tmp_path)
    assert f"{tmp_path} isn't mounted" in said(tmp_path)


def test_several_problems_are_told_at_once(
    tmp_path: Path, free: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    free(0)
    monkeypatch.setattr(host, "_has_filesystem", lambda name: False)
    monkeypatch.setattr(host.cgroups, "missing_controllers", lambda: frozenset({"memory"}))
    text = said(tmp_path)
    assert "bytes free" in text
    assert "no overlay" in text
    assert "memory" in text


def test_the_type_of_a_file_system_is_that_of_its_innermost_mount() -> None:
    assert host._type_of(Path("/proc/self")) == "proc"
    assert host._type_of(Path("/sys")) == "sysfs"
