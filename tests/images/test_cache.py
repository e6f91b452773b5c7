"""Filling, resuming, verifying and repairing a revision."""

import contextlib
import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from weight_cache import cache as cache_module
from weight_cache.cache import Cache
from weight_cache.download import split
from weight_cache.errors import (
    CacheError,
    ChangedObjectError,
    ChecksumError,
    LocalPermissionError,
    ManifestError,
    MissingObjectError,
    NetworkError,
    NoSpaceError,
    StoppedError,
)
from weight_cache.layout import Layout
from weight_cache.progress import Progress

from .stand_ins import MemoryStore

FILES = {"config.json": b"{}", "empty": b"", "sub/model.safetensors": bytes(range(256)) * 100, "b": b"x" * 5000}


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.publish("models", "r1", FILES)
    return made


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.fixture
def cache(tmp_path: Path, stop: threading.Event) -> Cache:
    return Cache(Layout(tmp_path, "r1"), parallel=4, part_bytes=4096, stop=stop)


def _fill(cache: Cache, store: MemoryStore) -> None:
    cache.fill(store, "models", Progress())


def test_a_filled_revision_has_every_file_and_ready(cache: Cache, store: MemoryStore) -> None:
    _fill(cache, store)
    for name, data in FILES.items():
        assert (cache.layout.final / name).read_bytes() == data
    mark = json.loads(cache.layout.ready.read_text())
    assert mark["revision"] == "r1"
    assert mark["bytes"] == sum(map(len, FILES.values()))
    assert not cache.layout.partial.exists()
    assert not [*cache.layout.final.rglob("*.part*")]
    found = cache.verify(Progress(), full=True)
    assert found is not None
    assert found.digest == mark["manifestSha256"]


def test_a_large_file_comes_in_several_ranges(cache: Cache, store: MemoryStore) -> None:
    _fill(cache, store)
    ranges = [start for key, start in store.fetched if key.endswith("model.safetensors")]
    assert sorted(ranges) == list(range(0, 25600, 4096))


@pytest.mark.parametrize("key", ["config.json", "sub/model.safetensors"])
def test_a_damaged_object_is_never_put_in_place(cache: Cache, store: MemoryStore, key: str) -> None:
    good = store.objects[f"models/r1/{key}"]
    store.objects[f"models/r1/{key}"] = b"\xff" + good[1:]
    with pytest.raises(ChecksumError, match="SHA-256"):
        _fill(cache, store)
    assert not cache.layout.final.exists()
    store.objects[f"models/r1/{key}"] = good
    _fill(cache, store)
    assert (cache.layout.final / key).read_bytes() == good


def test_a_wrong_size_is_found_before_anything_is_fetched(cache: Cache, store: MemoryStore) -> None:
    store.objects["models/r1/b"] += b"more"
    with pytest.raises(ChecksumError, match="5004 bytes, the manifest says 5000"):
        _fill(cache, store)


def test_a_missing_object_is_named(cache: Cache, store: MemoryStore) -> None:
    del store.objects["models/r1/b"]
    with pytest.raises(MissingObjectError, match="models/r1/b"):
        _fill(cache, store)


def test_a_missing_manifest_is_named(cache: Cache, store: MemoryStore) -> None:
    del store.objects["models/r1/manifest.json"]
    with pytest.raises(MissingObjectError, match=r"manifest\.json"):
        _fill(cache, store)


def test_a_manifest_of_another_revision_is_refused(cache: Cache, store: MemoryStore) -> None:
    store.objects["models/r1/manifest.json"] = store.objects["models/r1/manifest.json"].replace(b'"r1"', b'"r2"')
    with pytest.raises(ManifestError, match="'r2'"):
        _fill(cache, store)


def test_an_interrupted_download_goes_on_where_it_stopped(tmp_path: Path, store: MemoryStore) -> None:
    layout = Layout(tmp_path, "r1")

    def broken(key: str, start: int) -> None:
        if key.endswith("model.safetensors") and start >= 12288:
            raise NetworkError("the line broke")

    store.before_range = broken
    with pytest.raises(NetworkError):
        _fill(Cache(layout, parallel=1, part_bytes=4096, stop=threading.Event()), store)
    before = {one for one in store.fetched if one[1] < 12288}
    store.fetched.clear()
    store.before_range = lambda key, start: None
    _fill(Cache(layout, parallel=1, part_bytes=4096, stop=threading.Event()), store)
    again = set(store.fetched) & before
    assert again == set(), "ranges that had arrived were fetched again"
    assert ("models/r1/sub/model.safetensors", 12288) in store.fetched
    assert (layout.final / "sub/model.safetensors").read_bytes() == FILES["sub/model.safetensors"]


def test_a_range_that_broke_off_is_fetched_again(cache: Cache, store: MemoryStore) -> None:
    store.cut_after = 2000
    progress = Progress()
    with pytest.raises(NetworkError):
        cache.fill(store, "models", progress)
    store.cut_after = None
    cache.fill(store, "models", progress)
    assert progress.done == progress.total
    assert progress.files_done == len(FILES)


def test_other_part_size_or_changed_object_starts_anew(tmp_path: Path, store: MemoryStore) -> None:
    layout = Layout(tmp_path, "r1")
    store.cut_after = 2000
    with pytest.raises(NetworkError):
        _fill(Cache(layout, parallel=2, part_bytes=4096, stop=threading.Event()), store)
    store.cut_after = None
    _fill(Cache(layout, parallel=2, part_bytes=8192, stop=threading.Event()), store)
    assert (layout.final / "b").read_bytes() == FILES["b"]


def test_notes_that_promise_too_much_are_found_by_the_checksum(cache: Cache, store: MemoryStore) -> None:
    """After a power failure the notes may be on disk and the data not."""
    store.cut_after = 2000
    with pytest.raises(NetworkError):
        _fill(cache, store)
    store.cut_after = None
    for notes in cache.layout.partial.rglob("*.parts"):
        with notes.open("a") as file:
            file.write("".join(f"{number}\n" for number in range(7)))
    attempts = 0
    while not cache.layout.final.exists():
        attempts += 1
        assert attempts <= len(FILES), "each attempt throws at least one wrong file away"
        with contextlib.suppress(ChecksumError):
            _fill(cache, store)
    assert attempts > 1
    assert cache.verify(Progress(), full=True) is not None


def test_an_object_replaced_in_the_middle_is_an_error(cache: Cache, store: MemoryStore) -> None:
    def replace(key: str, start: int) -> None:
        if key.endswith("/b") and start:
            store.objects[key] = b"y" * 5000

    store.before_range = replace
    with pytest.raises(ChangedObjectError):
        _fill(cache, store)
    assert not cache.layout.final.exists()


def test_files_of_an_older_manifest_are_removed(cache: Cache, store: MemoryStore) -> None:
    cache.layout.partial.mkdir(parents=True)
    (cache.layout.partial / "stranger.bin").write_bytes(b"1")
    _fill(cache, store)
    assert not (cache.layout.final / "stranger.bin").exists()


def test_too_little_space_is_found_before_fetching(
    cache: Cache, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_module, "_SPARE", 2**60)
    with pytest.raises(NoSpaceError, match=r"needs .* GiB more"):
        _fill(cache, store)
    assert store.fetched == []


def test_a_full_disk_while_writing_is_named(cache: Cache, store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(NoSpaceError, match="NVMe"):
        _fill(cache, store)


def test_a_folder_that_may_not_be_written_is_named(
    cache: Cache, store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(cache.layout.partial))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(LocalPermissionError, match="must own"):
        _fill(cache, store)


def test_stop_ends_a_download(cache: Cache, store: MemoryStore, stop: threading.Event) -> None:
    store.before_range = lambda key, start: stop.set()
    with pytest.raises(StoppedError):
        _fill(cache, store)
    assert not cache.layout.final.exists()


def test_a_cheap_check_reads_no_file_and_a_full_one_finds_a_flipped_bit(cache: Cache, store: MemoryStore) -> None:
    _fill(cache, store)
    damaged = cache.layout.final / "sub/model.safetensors"
    data = bytearray(damaged.read_bytes())
    data[1000] ^= 1
    damaged.write_bytes(data)
    assert cache.verify(Progress(), full=False) is not None
    assert cache.verify(Progress(), full=True) is None
    assert not cache.layout.ready.exists()
    store.fetched.clear()
    _fill(cache, store)
    assert {key for key, _ in store.fetched} == {"models/r1/sub/model.safetensors"}, "only the damaged file is fetched"
    assert cache.verify(Progress(), full=True) is not None


@pytest.mark.parametrize("damage", ["shorter", "gone", "manifest", "mark"])
def test_a_broken_revision_is_set_aside(cache: Cache, store: MemoryStore, damage: str) -> None:
    _fill(cache, store)
    final = cache.layout.final
    if damage == "shorter":
        (final / "b").write_bytes(b"x")
    elif damage == "gone":
        (final / "b").unlink()
    elif damage == "manifest":
        (final / "manifest.json").write_bytes(b"{")
    else:
        cache.layout.ready.write_text(json.dumps({"manifestSha256": "0" * 64}))
    assert cache.verify(Progress(), full=False) is None
    assert not final.exists()
    _fill(cache, store)
    assert cache.verify(Progress(), full=True) is not None


def test_a_revision_without_ready_is_checked_whole_and_marked(cache: Cache, store: MemoryStore) -> None:
    """The machine went down between the rename and READY."""
    _fill(cache, store)
    cache.layout.ready.unlink()
    assert cache.verify(Progress(), full=False) is not None
    assert cache.layout.ready.exists()
    cache.layout.ready.unlink()
    (cache.layout.final / "b").write_bytes(b"y" * 5000)
    assert cache.verify(Progress(), full=False) is None


def test_two_agents_do_not_work_on_one_revision(cache: Cache) -> None:
    with cache.lock(), pytest.raises(CacheError, match="another weight-cache agent"), cache.lock():
        pass
    with cache.lock():
        pass


@given(st.integers(0, 10_000), st.integers(1, 999))
def test_ranges_cover_a_file_exactly(size: int, part: int) -> None:
    ranges = split(size, part)
    assert sum(one.length for one in ranges) == size
    assert all(one.start == one.number * part and 0 < one.length <= part for one in ranges)
