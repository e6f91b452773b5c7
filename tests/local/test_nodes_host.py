"""What is said about a machine that can't hold nodes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from srvmod.local.nodes import check_host, host


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


def test_no_space_is_named_with_the_amount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10**12, 10**12, 2 * 10**9))
    assert "2.0 GB free, 6 GB are needed" in said(tmp_path / "not" / "there" / "yet")
    assert "SRVMOD_STATE" in said(tmp_path)


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
