"""What a manifest may hold, and that building one and reading it agree."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from weight_cache import manifest
from weight_cache.cli import main
from weight_cache.errors import ManifestError

DIGEST = "0" * 64
_PART = st.text("abcXYZ019-_.", min_size=1, max_size=8).filter(
    lambda part: part not in {".", ".."} and not part.endswith((".part", ".parts", ".tmp"))
)


def _raw(files: object, **changes: object) -> bytes:
    return json.dumps({"schema": 1, "revision": "r1", "files": files, **changes}).encode()


def _file(path: object = "a", size: object = 1, sha256: object = DIGEST) -> dict[str, object]:
    return {"path": path, "sizeBytes": size, "sha256": sha256}


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"{", "not JSON"),
        (b"[]", "expected an object"),
        (_raw([]), "lists no files"),
        (_raw({}), "expected an object"),
        (_raw([_file()], schema=2), "schema 2"),
        (_raw([_file()], revision="r2"), "'r2'"),
        (_raw([1]), "files[0]"),
        (_raw([_file("../a")]), "must not leave"),
        (_raw([_file("/a")]), "must be relative"),
        (_raw([_file("a/./b")]), "must be relative"),
        (_raw([_file("a\\b")]), "forward slashes"),
        (_raw([_file("")]), "forward slashes"),
        (_raw([_file(None)]), "forward slashes"),
        (_raw([_file("READY")]), "cache itself"),
        (_raw([_file("x.part")]), "cache itself"),
        (_raw([_file(size=-1)]), "sizeBytes -1"),
        (_raw([_file(size=True)]), "sizeBytes True"),
        (_raw([_file(size=1.5)]), "sizeBytes 1.5"),
        (_raw([_file(sha256="ABC")]), "sha256 'ABC'"),
        (_raw([_file(), _file()]), "listed twice: a"),
        (_raw([_file("a"), _file("a/b")]), "as a file and as a folder"),
    ],
)
def test_bad_manifest_is_refused_with_its_place(raw: bytes, words: str) -> None:
    with pytest.raises(ManifestError) as caught:
        manifest.parse(raw, "r1", "s3://b/manifest.json")
    assert "s3://b/manifest.json" in str(caught.value)
    assert words in str(caught.value)


@pytest.mark.parametrize("revision", ["", "..", "a/b", ".hidden", "x.partial", "a" * 129, "a b"])
def test_a_revision_is_one_safe_folder_name(revision: str) -> None:
    with pytest.raises(ManifestError):
        manifest.check_revision(revision)


@settings(max_examples=40)
@given(
    st.dictionaries(st.lists(_PART, min_size=1, max_size=3).map("/".join), st.binary(max_size=50), min_size=1),
)
def test_a_built_manifest_is_read_back(tmp_path_factory: pytest.TempPathFactory, files: dict[str, bytes]) -> None:
    folder = tmp_path_factory.mktemp("weights")
    written: dict[str, bytes] = {}
    for name, data in files.items():
        path = folder / name
        if name in {manifest.NAME, manifest.READY} or any(parent.is_file() for parent in path.parents):
            continue
        if path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        written[name] = data
    if not written:
        return
    raw = manifest.build(folder, "r1")
    found = manifest.parse(raw, "r1", "here")
    assert {entry.path: entry.size for entry in found.files} == {name: len(data) for name, data in written.items()}
    assert raw == manifest.build(folder, "r1")


@given(st.binary(max_size=200))
def test_garbage_is_refused_and_never_crashes(raw: bytes) -> None:
    with pytest.raises(ManifestError):
        manifest.parse(raw, "r1", "here")


def test_command_writes_a_manifest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "rev-7"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"w")
    assert main(["manifest", str(folder)]) == 0
    assert manifest.parse(capsys.readouterr().out.encode(), "rev-7", "stdout").files[0].path == "config.json"
    assert main(["manifest", str(tmp_path / "absent")]) == 1
    assert "no such folder" in capsys.readouterr().err


def test_links_to_folders_are_named_and_links_to_files_are_files(tmp_path: Path) -> None:
    folder = tmp_path / "rev-7"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/a").write_bytes(b"12")
    (folder / "link").symlink_to("sub/a")
    assert [entry.path for entry in manifest.parse(manifest.build(folder, "r1"), "r1", "").files] == ["link", "sub/a"]
    (tmp_path / "blobs").mkdir()
    (folder / "draft").symlink_to(tmp_path / "blobs")
    (folder / "sub/again").symlink_to("../sub")
    with pytest.raises(ManifestError, match=rf"{folder}/draft, {folder}/sub/again: a link to a folder.*cp -rL"):
        manifest.build(folder, "r1")


def test_a_folder_reached_by_a_link_has_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/a").write_bytes(b"12")
    (tmp_path / "link").symlink_to("real")
    assert manifest.build(tmp_path / "link", "r1") == manifest.build(tmp_path / "real", "r1")


def test_a_folder_that_can_not_be_read_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "draft").mkdir()
    (tmp_path / "a").write_bytes(b"12")
    scan = os.scandir

    def refuse(path: str) -> object:
        if str(path).endswith("draft"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(PermissionError, match="draft"):
        manifest.build(tmp_path, "r1")
