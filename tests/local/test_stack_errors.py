"""Whatever goes wrong reaches a person as what happened and what to do."""

from __future__ import annotations

import collections
import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from srvmod.local import commands, errors
from srvmod.local.errors import LocalError, explain
from srvmod.local.nodes.images.layer import PackingError
from srvmod.local.nodes.leftovers import LeftoverError
from srvmod.local.paths import State
from srvmod.tools import ToolError

Figures = collections.namedtuple("Figures", "total used free")


def system_error(number: int, file: str | None = None) -> OSError:
    return OSError(number, os.strerror(number), file)


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Figures(10**9, 10**9 - 4096, 4096))


def test_an_error_for_a_person_stays_what_it_is(tmp_path: Path) -> None:
    error = LocalError("what", "fix")
    assert explain(error, tmp_path) is error


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_no_space_names_the_file_and_the_folder(number: int, tmp_path: Path) -> None:
    found = explain(system_error(number, "/x/etcd.log"), tmp_path)
    assert "/x/etcd.log: no space left" in found.what
    assert str(tmp_path) in found.what
    assert "SRVMOD_STATE" in found.fix


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_named_whatever_it_broke(tmp_path: Path) -> None:
    found = explain(LocalError("etcd: exited with 1", "run it again"), tmp_path / "not" / "yet")
    assert "etcd: exited with 1" in found.what
    assert f"{tmp_path} has 4,096 bytes free, {errors.LOW_DISK_BYTES:,} are needed" in found.what
    assert found.fix.startswith("make room there")
    assert "run it again" in found.fix


def test_a_disk_without_inodes_is_full_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Figures(10**12, 0, 10**12))
    for total, left, words in ((10_000, 12, "12 inodes (files) free"), (0, 0, ""), (10_000, 2_000, "")):
        counts = SimpleNamespace(f_files=total, f_favail=left)
        monkeypatch.setattr(os, "statvfs", lambda _, counts=counts: counts)
        found = errors.low_disk(tmp_path)
        assert words in found if words else found == ""


def test_a_file_that_only_root_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = explain(system_error(errno.EACCES, "/s/facts.json"), tmp_path)
    assert "not root (uid 1000)" in found.what
    assert "/s/facts.json" in found.what
    assert "sudo --preserve-env" in found.fix
    assert "/srvmod" in found.fix


def test_a_read_only_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    found = explain(system_error(errno.EROFS, "/s/up.lock"), tmp_path)
    assert "/s/up.lock: Read-only file system" in found.what
    assert "SRVMOD_STATE" in found.fix


def test_errors_of_the_rooms_keep_their_words(tmp_path: Path) -> None:
    assert explain(ToolError("etcd can't be built", "install Go"), tmp_path).fix == "install Go"
    assert explain(PackingError("no /usr/bin/x"), tmp_path).what == "no /usr/bin/x"
    assert "local down" in explain(LeftoverError("cgroup /a"), tmp_path).fix


def test_clients_errors_say_who_was_asked(tmp_path: Path) -> None:
    from botocore.exceptions import EndpointConnectionError

    from srvmod.local.api import ApiError

    assert "simulated AWS" in explain(EndpointConnectionError(endpoint_url="http://x"), tmp_path).what
    refused = explain(ApiError(503, "GET /api/v1/nodes: 503 Service Unavailable"), tmp_path)
    assert "API server" in refused.what
    assert "Service Unavailable" in refused.what
    assert "local up" in refused.fix


def test_a_fault_of_our_own_is_called_one_and_its_traceback_is_kept(tmp_path: Path) -> None:
    try:
        raise KeyError("surprise")
    except KeyError as error:
        found = explain(error, tmp_path)
    assert "KeyError: 'surprise'" in found.what
    assert str(tmp_path / errors.ERROR_FILE) in found.fix
    assert "Traceback" in (tmp_path / errors.ERROR_FILE).read_text()


def test_without_a_place_for_the_traceback_the_line_is_told(tmp_path: Path) -> None:
    try:
        raise KeyError("surprise")
    except KeyError as error:
        found = explain(error, tmp_path / "not there")
    assert f"{Path(__file__).name}:" in found.fix


def test_messages_with_brackets_are_shown_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    commands._fail(LocalError("[/etc] is [bold]odd[/] in arn:aws:x:1:secret:y", "see [a-z]"))
    shown = capsys.readouterr().err
    assert "[/etc] is [bold]odd[/] in arn:aws:x:1:secret:y" in shown
    assert "see [a-z]" in shown


def test_a_problem_is_shown_whole_on_a_narrow_screen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    problem = "exited with 2: " + "words and a long/path/" * 20 + "; delete [the file]"
    sick = {"name": "simulated-aws@a-very-long-name-of-a-node-x", "pid": None, "healthy": False, "problem": problem}
    status = {"nodes": [], "components": [sick], "problem": "", "atWork": None, "endpoint": "e", "kubeconfig": "k"}
    status["apiKeyFile"] = "f"
    commands._show(status)
    assert f"{sick['name']}: {problem}" in capsys.readouterr().out


def test_what_an_interruption_leaves_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = State(tmp_path)
    assert commands._left(state) == "nothing runs; `srvmod local up` begins again"
    monkeypatch.setattr("srvmod.local.namespace.holders", lambda _: [4711])
    assert "`srvmod local up` goes on from here, `srvmod local down` ends it" in commands._left(state)
