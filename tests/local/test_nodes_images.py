"""Layers of images packed from files of this machine."""

from __future__ import annotations

import hashlib
import os
import sys
import tarfile
from pathlib import Path

import pytest

from srvmod.local.nodes.images import python
from srvmod.local.nodes.images.layer import BYTECODE, Layer, PackingError


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    folder = tmp_path / "sources"
    (folder / "pkg" / "tests").mkdir(parents=True)
    (folder / "pkg" / "__init__.py").write_text("x = 1\n")
    (folder / "pkg" / "tests" / "test_it.py").write_text("")
    (folder / "pkg" / "broken.py").write_text("not python at all\n")
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o755)
    return folder


def layer_of(folder: Path) -> Layer:
    layer = Layer()
    layer.tree("/app", folder / "pkg", without=["tests"])
    layer.file("/bin/run", folder / "run")
    layer.link("/bin/again", "run")
    layer.folder("/tmp", 0o1777)
    layer.text("/etc/passwd", "root:x:0:0::/:\n")
    return layer


def test_what_is_in_it(sources: Path, tmp_path: Path) -> None:
    archive = tmp_path / "layer.tar"
    layer_of(sources).write(archive)
    with tarfile.open(archive) as tar:
        entries = {entry.name: entry for entry in tar}
    assert entries["bin/run"].mode == 0o755
    assert entries["app/__init__.py"].mode == 0o644
    assert entries["bin/again"].linkname == "run"
    assert entries["tmp"].mode == 0o1777
    assert f"app/__pycache__/__init__{BYTECODE}" in entries
    assert not any("tests" in name or f"broken{BYTECODE}" in name for name in entries)
    assert {(entry.uid, entry.gid) for entry in entries.values()} == {(0, 0)}


def test_the_same_files_give_the_same_bytes(sources: Path, tmp_path: Path) -> None:
    digests = set()
    for name in ("a.tar", "b.tar"):
        layer_of(sources).write(tmp_path / name)
        digests.add(hashlib.sha256((tmp_path / name).read_bytes()).hexdigest())
    assert len(digests) == 1


def test_the_fingerprint_changes_with_any_file(sources: Path) -> None:
    before = layer_of(sources).fingerprint()
    assert layer_of(sources).fingerprint() == before
    os.utime(sources / "run", ns=(1, 1))
    assert layer_of(sources).fingerprint() != before


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PackingError, match=r"nowhere: not a file; it belongs at /bin/x"):
        Layer().file("/bin/x", tmp_path / "nowhere")


def test_packages_come_with_their_pinned_version(tmp_path: Path) -> None:
    requirements = tmp_path / "requirements.txt"
    requirements.write_text("# a comment\ntyping-extensions==0.0.1\n")
    with pytest.raises(PackingError, match=r"typing-extensions 0\.0\.1 is asked for, .* is installed"):
        python.packages(requirements)
    requirements.write_text("no-such-package-anywhere==1\n")
    with pytest.raises(PackingError, match="isn't installed here"):
        python.packages(requirements)
    requirements.write_text("pydantic>=2\n")
    with pytest.raises(PackingError, match="allowed are lines"):
        python.packages(requirements)


def test_the_interpreter_has_its_standard_library_but_not_its_tests() -> None:
    names = {str(path) for path in python.interpreter().files}
    assert any(name.endswith("/json/__init__.py") for name in names)
    assert any("/lib-dynload/_ssl." in name for name in names) or sys.platform != "linux"
    assert not any("/idlelib/" in name or "/test/support" in name or "_tkinter" in name for name in names)


def test_a_room_stands_under_its_installed_name() -> None:
    files = python.rooms(["contract"]).files
    names = {str(target): source for target, source in files.items()}
    assert names["/app/srvmod/contract/units.py"].name == "units.py"
    assert "/app/srvmod/__init__.py" in names
    assert not any("__pycache__" in name for name in names)
