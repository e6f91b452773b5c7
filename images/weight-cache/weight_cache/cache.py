"""The cache folder: `<revision>.partial` while it fills, `<revision>` with READY once it is verified."""

import fcntl
import json
import logging
import os
import shutil
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from weight_cache import manifest
from weight_cache.download import FileDownload, Range, Stop
from weight_cache.errors import CacheError, NoSpaceError, StoppedError
from weight_cache.layout import Layout, translated
from weight_cache.manifest import FileEntry, Manifest
from weight_cache.progress import Progress
from weight_cache.store import ObjectStore

_log = logging.getLogger("weight_cache")
_MANIFEST_LIMIT = 64 * 2**20  # bytes
_SPARE = 64 * 2**20  # bytes that must stay free


class Cache:
    """Fills and checks one revision. `parallel` ranges of `part_bytes` are fetched at a time.

    `required` are patterns of files without which engines don't start, whatever the manifest says.
    """

    def __init__(
        self, layout: Layout, *, parallel: int, part_bytes: int, stop: threading.Event, required: Sequence[str] = ()
    ) -> None:
        self.layout = layout
        self._required = tuple(required)
        self._parallel = parallel
        self._part_bytes = part_bytes
        self._stop = stop

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Only one agent works on a revision. Raises CacheError when another one does."""
        with translated(self.layout):
            self.layout.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.layout.root / f".{self.layout.revision}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise CacheError(f"{self.layout.final}: another weight-cache agent is at work") from None
            yield
        finally:
            os.close(descriptor)

    def verify(self, progress: Progress, *, full: bool) -> Manifest | None:
        """The verified revision in place, or None when there is none (a broken one is set aside for repair).

        Without `full`: READY names the digest of the manifest beside it, and every file has its size. With `full`,
        or when READY is missing: every SHA-256, too. One that lacks a required file is none, but stays where it is:
        engines that need less run from it, and only `fill` knows whether its bucket has more by now.
        Raises CacheError, StoppedError.
        """
        final = self.layout.final
        with translated(self.layout):
            if not final.is_dir():
                return None
            try:
                raw = (final / manifest.NAME).read_bytes()
                found = manifest.parse(raw, self.layout.revision, str(final / manifest.NAME))
                marked = self._mark()
                if marked is not None and marked != found.digest:
                    raise CacheError(f"{self.layout.ready}: made for another manifest")
                self._check_sizes(found)
                if full or marked is None:
                    self._check_contents(found, progress)
            except (FileNotFoundError, CacheError) as error:
                _log.warning("the revision in place is broken and is fetched again where needed: %s", error)
                self._set_aside()
                return None
            if marked is None:
                self._write_ready(found)
            absent = manifest.lacking(found, self._required)
            if absent:
                _log.warning("%s lacks %s: its manifest is read again", final, ", ".join(absent))
                return None
            return found

    def fill(self, store: ObjectStore, prefix: str, progress: Progress) -> Manifest:
        """Download, verify and put in place.

        Raises CacheError, StoppedError; ManifestError before anything is fetched when required files aren't listed.
        """
        base = "/".join(part for part in (prefix.strip("/"), self.layout.revision) if part)
        key = f"{base}/{manifest.NAME}"
        wanted = manifest.parse(store.read(key, _MANIFEST_LIMIT), self.layout.revision, store.address(key))
        manifest.check_required(wanted, self._required, store.address(key))
        with translated(self.layout):
            if self.layout.final.exists():
                self._set_aside()
            self.layout.partial.mkdir(parents=True, exist_ok=True)
            self._drop_strangers(wanted)
            files = [
                FileDownload(
                    store,
                    f"{base}/{entry.path}",
                    entry,
                    self.layout.partial,
                    part_bytes=self._part_bytes,
                    progress=progress.add,
                )
                for entry in wanted.files
            ]
            progress.begin(wanted.size, len(files))
            self._check_space(wanted, files)
            self._transfer(files, progress)
            self._put_in_place(wanted)
        return wanted

    def _transfer(self, files: list[FileDownload], progress: Progress) -> None:
        """Fetch all ranges of all files with one pool; each file is verified as soon as it is whole."""
        failed = threading.Event()
        stop = _Either(self._stop, failed)
        with ThreadPoolExecutor(self._parallel, thread_name_prefix="fetch") as pool:
            running: set[Future[None]] = set()
            try:
                complete = list(pool.map(partial(FileDownload.is_complete, stop=stop), files))
                for file, whole in zip(files, complete, strict=True):
                    self._stopped()
                    if whole:
                        progress.file_done()
                        continue
                    ranges = file.begin()
                    for one in ranges or [None]:
                        running.add(pool.submit(self._fetch, file, one, stop, progress))
                        if len(running) >= 2 * self._parallel:
                            running = self._reap(running)
                while running:
                    running = self._reap(running)
            except BaseException:
                failed.set()  # the others stop at their next block
                for future in running:
                    future.cancel()
                raise

    def _fetch(self, file: FileDownload, one: Range | None, stop: Stop, progress: Progress) -> None:
        """Fetch a range, or none when all of them are there, and finish the file after its last one."""
        if stop.is_set():
            raise StoppedError
        if one is None or file.fetch(one, stop):
            file.finish(stop)
            progress.file_done()

    def _reap(self, running: set[Future[None]]) -> set[Future[None]]:
        done, left = wait(running, timeout=0.5, return_when=FIRST_COMPLETED)
        self._stopped()
        for future in done:
            future.result()
        return left

    def _stopped(self) -> None:
        if self._stop.is_set():
            raise StoppedError

    def _check_space(self, wanted: Manifest, files: list[FileDownload]) -> None:
        present = sum(file.present for file in files)
        free = shutil.disk_usage(self.layout.root).free
        need = wanted.size - present + _SPARE
        if need > free:
            raise NoSpaceError(
                f"{self.layout.root}: revision {wanted.revision} needs {need / 2**30:.2f} GiB more, "
                f"{free / 2**30:.2f} GiB are free; remove old revisions or mount a larger disk"
            )

    def _check_sizes(self, wanted: Manifest) -> None:
        for entry in wanted.files:
            path = self.layout.final / entry.path
            size = path.stat().st_size
            if size != entry.size:
                raise CacheError(f"{path}: {size} bytes, the manifest says {entry.size}")

    def _check_contents(self, wanted: Manifest, progress: Progress) -> None:
        """Hash all files with one pool; hundreds of GB take longer than a probe waits for a sign of life."""
        failed = threading.Event()
        stop = _Either(self._stop, failed)

        def pulse() -> None:
            if stop.is_set():
                raise StoppedError
            progress.beat()

        def check(entry: FileEntry) -> None:
            path = self.layout.final / entry.path
            if manifest.file_sha256(path, pulse) != entry.sha256:
                raise CacheError(f"{path}: its SHA-256 isn't the manifest's")

        with ThreadPoolExecutor(self._parallel, thread_name_prefix="hash") as pool:
            try:
                for _ in pool.map(check, wanted.files):
                    pass
            except BaseException:
                failed.set()  # the others stop at their next block
                raise

    def _drop_strangers(self, wanted: Manifest) -> None:
        """Remove files that this manifest doesn't list: the revision was published anew, or a run was interrupted."""
        names = {entry.path for entry in wanted.files}
        for path in self.layout.partial.rglob("*"):
            name = path.relative_to(self.layout.partial).as_posix()
            base = name.removesuffix(".parts").removesuffix(".part")
            if path.is_file() and base not in names:
                path.unlink()

    def _put_in_place(self, wanted: Manifest) -> None:
        partial, final = self.layout.partial, self.layout.final
        _write_durably(partial / manifest.NAME, wanted.raw)
        for folder in sorted({(partial / entry.path).parent for entry in wanted.files} | {partial}, reverse=True):
            _sync_folder(folder)
        partial.rename(final)
        _sync_folder(final.parent)
        self._write_ready(wanted)

    def _write_ready(self, wanted: Manifest) -> None:
        mark = {
            "schema": manifest.SCHEMA,
            "revision": wanted.revision,
            "manifestSha256": wanted.digest,
            "files": len(wanted.files),
            "bytes": wanted.size,
            "writtenAt": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }
        _write_durably(self.layout.ready, (json.dumps(mark) + "\n").encode())

    def _mark(self) -> str | None:
        """The digest that READY names; None when there is no readable READY."""
        try:
            value = json.loads(self.layout.ready.read_bytes())
        except (FileNotFoundError, ValueError):
            return None
        digest = value.get("manifestSha256") if isinstance(value, dict) else None
        return digest if isinstance(digest, str) else None

    def _set_aside(self) -> None:
        """Turn the broken revision back into a partial one: whole files in it need not be fetched again."""
        self.layout.ready.unlink(missing_ok=True)
        if self.layout.partial.exists():
            shutil.rmtree(self.layout.partial)
        self.layout.final.rename(self.layout.partial)


class _Either:
    """Set when one of two events is."""

    def __init__(self, *events: threading.Event) -> None:
        self._events = events

    def is_set(self) -> bool:
        return any(event.is_set() for event in self._events)


def _write_durably(path: Path, data: bytes) -> None:
    """Write a small file so that after a crash it is either absent or whole."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
