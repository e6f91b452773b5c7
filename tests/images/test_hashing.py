"""Hashing hundreds of GB: it shows signs of life, uses the pool and ends when asked to."""

import threading
from pathlib import Path

import pytest
from weight_cache import manifest
from weight_cache.cache import Cache
from weight_cache.download import FileDownload
from weight_cache.errors import StoppedError
from weight_cache.layout import Layout
from weight_cache.progress import Progress

from .stand_ins import MemoryStore

BLOCK = 1000
FILES = {"config.json": b"{}", "a.safetensors": b"a" * 20 * BLOCK, "b.safetensors": b"b" * 20 * BLOCK}


class Heard(Progress):
    """Counts signs of life; `stop` is set at the first one."""

    def __init__(self, stop: threading.Event | None = None) -> None:
        super().__init__()
        self.beats = 0
        self._stop = stop

    def _hear(self) -> None:
        self.beats += 1
        if self._stop is not None:
            self._stop.set()

    def beat(self) -> None:
        super().beat()
        self._hear()

    def add(self, count: int) -> None:
        super().add(count)
        self._hear()


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest, "_BLOCK", BLOCK)


@pytest.fixture
def store() -> MemoryStore:
    made = MemoryStore()
    made.publish("models", "r1", FILES)
    return made


@pytest.fixture
def root(tmp_path: Path, store: MemoryStore) -> Path:
    """A folder with the revision in place."""
    _cache(tmp_path).fill(store, "models", Progress())
    return tmp_path


def _cache(root: Path, stop: threading.Event | None = None, parallel: int = 1) -> Cache:
    return Cache(Layout(root, "r1"), parallel=parallel, part_bytes=4096, stop=stop or threading.Event())


def test_a_full_verification_shows_a_sign_of_life_for_every_block(root: Path) -> None:
    progress = Heard()
    assert _cache(root).verify(progress, full=True) is not None
    assert progress.beats >= 20 + 20 + 1


def test_whole_files_of_an_earlier_run_show_a_sign_of_life_for_every_block(root: Path, store: MemoryStore) -> None:
    layout = Layout(root, "r1")
    layout.final.rename(layout.partial)
    progress = Heard()
    store.fetched.clear()
    _cache(root).fill(store, "models", progress)
    assert store.fetched == []
    assert progress.done == sum(map(len, FILES.values()))
    assert progress.beats >= 20 + 20 + 1


def test_files_are_verified_side_by_side(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(3, timeout=30)  # breaks when one file waits for another
    plain = manifest.file_sha256

    def slow(path: Path, *rest: object) -> str:
        together.wait()
        return plain(path)

    monkeypatch.setattr(manifest, "file_sha256", slow)
    assert _cache(root, parallel=3).verify(Progress(), full=True) is not None


def test_stop_ends_a_verification_within_a_block_and_breaks_nothing(root: Path) -> None:
    stop = threading.Event()
    progress, cache = Heard(stop), _cache(root, stop)
    with pytest.raises(StoppedError):
        cache.verify(progress, full=True)
    assert progress.beats == 1
    assert cache.layout.ready.exists()


def test_stop_ends_a_resumption_within_a_block_and_breaks_nothing(root: Path, store: MemoryStore) -> None:
    layout = Layout(root, "r1")
    layout.final.rename(layout.partial)
    stop = threading.Event()
    progress = Heard(stop)
    with pytest.raises(StoppedError):
        _cache(root, stop).fill(store, "models", progress)
    assert progress.beats == 1
    assert (layout.partial / "a.safetensors").read_bytes() == FILES["a.safetensors"]


def test_stop_ends_the_last_check_of_a_file_and_nothing_is_fetched_again(tmp_path: Path, store: MemoryStore) -> None:
    raw = store.objects["models/r1/manifest.json"]
    [entry] = [one for one in manifest.parse(raw, "r1", "here").files if one.path == "a.safetensors"]
    key, stop = "models/r1/a.safetensors", threading.Event()
    file = FileDownload(store, key, entry, tmp_path, part_bytes=4096, progress=lambda count: None)
    for one in file.begin():
        file.fetch(one, stop)
    stop.set()
    with pytest.raises(StoppedError):
        file.finish(stop)
    assert file.begin() == []
    store.fetched.clear()
    _cache(tmp_path).fill(store, "models", Progress())
    assert (tmp_path / "r1/a.safetensors").read_bytes() == FILES["a.safetensors"]


@pytest.mark.parametrize(
    ("torn", "done"),
    [("5\n123", {5}), ("5\n1234\n", {5, 1234}), ("5", set()), ("5\n1234\n\0\0\0", {5, 1234}), ("5\n\xb2\n", {5})],
)
def test_half_a_number_in_the_notes_is_no_number_and_spoils_no_other(
    tmp_path: Path, store: MemoryStore, torn: str, done: set[int]
) -> None:
    store.publish("models", "r2", {"w": b"w" * 1300})
    [entry] = manifest.parse(store.objects["models/r2/manifest.json"], "r2", "here").files
    file = FileDownload(store, "models/r2/w", entry, tmp_path, part_bytes=1, progress=lambda count: None)
    ranges = file.begin()
    assert len(ranges) == 1300
    notes = tmp_path / "w.parts"
    with notes.open("a", encoding="utf-8") as text:
        text.write(torn)
    assert {one.number for one in ranges} - {one.number for one in file.begin()} == done
    file.fetch(ranges[4], threading.Event())
    assert {one.number for one in ranges} - {one.number for one in file.begin()} == done | {4}
