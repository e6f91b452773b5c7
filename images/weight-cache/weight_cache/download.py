"""Fetch one file in parallel ranges, so that an interrupted download goes on where it stopped.

While a file is incomplete it lies as `<path>.part` with `<path>.parts` beside it: a first line that says what is being
fetched, then the number of each range that has been written. Ranges are written before they are noted. After a
power failure the notes may promise too much; the checksum at the end finds that, and the file is fetched anew.
"""

import json
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from weight_cache.errors import ChecksumError, StoppedError
from weight_cache.manifest import FileEntry, file_sha256
from weight_cache.store import ObjectInfo, ObjectStore


class Stop(Protocol):
    """Asked between blocks whether to give up; a threading.Event is one."""

    def is_set(self) -> bool:
        """Whether to stop."""
        ...


@dataclass(frozen=True)
class Range:
    """Bytes `start` … `start + length - 1`, the `number`-th of its file."""

    number: int
    start: int
    length: int


def split(size: int, part: int) -> list[Range]:
    """Cut `size` bytes into ranges of `part` bytes; the last one may be shorter. An empty file has none."""
    return [Range(number, start, min(part, size - start)) for number, start in enumerate(range(0, size, part))]


class FileDownload:
    """One file on its way into a folder. `progress` is told of bytes, also of those found from an earlier run."""

    def __init__(
        self,
        store: ObjectStore,
        key: str,
        entry: FileEntry,
        folder: Path,
        *,
        part_bytes: int,
        progress: Callable[[int], None],
    ) -> None:
        self.entry = entry
        self._store = store
        self._key = key
        self.path = folder / entry.path
        self._part = self.path.with_name(self.path.name + ".part")
        self._notes = self.path.with_name(self.path.name + ".parts")
        self._part_bytes = part_bytes
        self._progress = progress
        self._lock = threading.Lock()
        self._left = 0
        self._etag = ""

    @property
    def present(self) -> int:
        """Bytes of this file that are on disk already, for the check of free space."""
        for path in (self.path, self._part):
            if path.exists():
                return path.stat().st_blocks * 512
        return 0

    def is_complete(self, stop: Stop) -> bool:
        """Whether an earlier run finished this file; wrong content is thrown away. Raises OSError, StoppedError."""
        if not self.path.is_file():
            return False
        if self.path.stat().st_size == self.entry.size and self._sha256(self.path, stop) == self.entry.sha256:
            self._progress(self.entry.size)
            return True
        self.path.unlink()
        return False

    def begin(self) -> list[Range]:
        """Open or resume; the ranges that are still missing. Raises CacheError, OSError."""
        info = self._store.info(self._key)
        if info.size != self.entry.size:
            raise ChecksumError(
                f"{self._store.address(self._key)}: {info.size} bytes, the manifest says {self.entry.size}; "
                "publish the revision again"
            )
        self._etag = info.etag
        self._part.parent.mkdir(parents=True, exist_ok=True)
        ranges = split(self.entry.size, self._part_bytes)
        done = self._read_notes(info)
        if done is None:
            self.discard()
            self._notes.write_text(json.dumps(self._header(info)) + "\n", encoding="utf-8")
            with self._part.open("wb") as file:
                file.truncate(self.entry.size)
            done = set()
        missing = [one for one in ranges if one.number not in done]
        self._progress(self.entry.size - sum(one.length for one in missing))
        self._left = len(missing)
        return missing

    def fetch(self, one: Range, stop: Stop) -> bool:
        """Fetch a range; True when it was the file's last one. Raises CacheError, OSError, StoppedError."""
        descriptor = os.open(self._part, os.O_WRONLY | os.O_CLOEXEC)
        try:
            position = one.start

            def write(block: bytes) -> None:
                nonlocal position
                if stop.is_set():
                    raise StoppedError
                view = memoryview(block)
                while view:
                    written = os.pwrite(descriptor, view, position)
                    position += written
                    self._progress(written)
                    view = view[written:]

            try:
                self._store.read_range(self._key, self._etag, one.start, one.length, write)
            except BaseException:
                self._progress(one.start - position)  # it will be fetched again
                raise
        finally:
            os.close(descriptor)
        with self._lock:
            with self._notes.open("a", encoding="utf-8") as notes:
                notes.write(f"{one.number}\n")
            self._left -= 1
            return self._left == 0

    def finish(self, stop: Stop) -> None:
        """Verify, flush to disk and give the file its name.

        Raises ChecksumError after throwing it away, OSError, StoppedError.
        """
        found = self._sha256(self._part, stop)
        if found != self.entry.sha256:
            self.discard()
            raise ChecksumError(
                f"{self._store.address(self._key)}: SHA-256 {found}, the manifest says {self.entry.sha256}; "
                "thrown away and fetched again. If it stays so, the object is damaged: publish the revision again"
            )
        with self._part.open("rb") as file:
            os.fsync(file.fileno())
        self._part.replace(self.path)
        self._notes.unlink(missing_ok=True)

    def discard(self) -> None:
        """Forget what was fetched."""
        self._part.unlink(missing_ok=True)
        self._notes.unlink(missing_ok=True)

    def _sha256(self, path: Path, stop: Stop) -> str:
        def pulse() -> None:
            if stop.is_set():
                raise StoppedError
            self._progress(0)  # no new bytes, but a sign of life

        return file_sha256(path, pulse)

    def _header(self, info: ObjectInfo) -> dict[str, Any]:
        return {
            "etag": info.etag,
            "size": info.size,
            "sha256": self.entry.sha256,
            "partBytes": self._part_bytes,
        }

    def _read_notes(self, info: ObjectInfo) -> set[int] | None:
        """Ranges that an earlier run wrote; None when there is nothing usable."""
        try:
            text = self._notes.read_bytes()
            # A last line without its end is half written: 123 may be what is left of 1234.
            whole = text[: text.rfind(b"\n") + 1]
            first, *rest = whole.splitlines()
            if json.loads(first) != self._header(info) or self._part.stat().st_size != info.size:
                return None
            if whole != text:
                os.truncate(self._notes, len(whole))  # or the next number would be glued to the half one
        except (OSError, ValueError):
            return None
        return {int(line) for line in rest if line.isdigit()}
