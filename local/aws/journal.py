"""What the simulated AWS remembers: every request that changed something, in order, played again at start.

moto keeps its objects in memory only. The journal keeps requests instead of objects: a request carries its own
seed, so the objects come back with the very ids that were given out (determinism.py). A record is written before
the answer leaves, so what a client was told survives `kill -9`; a record cut off in the middle was never answered
and is dropped.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

FORMAT = 1
_KEPT = ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "RAW_URI", "REQUEST_URI", "CONTENT_TYPE", "CONTENT_LENGTH")
_KEPT_SERVER = ("SERVER_NAME", "SERVER_PORT", "SERVER_PROTOCOL", "SCRIPT_NAME", "wsgi.url_scheme")
_NAMES = "moto.preserved_header_names"


class JournalError(Exception):
    """The journal can't be used: what is wrong, where, and what to do."""


@dataclass(frozen=True)
class Record:
    """One request that succeeded: what is needed to run it again with the same outcome."""

    seed: str
    at: datetime
    status: int
    environ: dict[str, Any]
    body: bytes


def keep_environ(environ: dict[str, Any]) -> dict[str, Any]:
    """The part of a WSGI environment that decides about the outcome of a request."""
    kept = {k: environ[k] for k in (*_KEPT, *_KEPT_SERVER) if k in environ}
    kept |= {k: v for k, v in environ.items() if k.startswith("HTTP_") and isinstance(v, str)}
    if _NAMES in environ:
        kept[_NAMES] = environ[_NAMES]
    return kept


class Journal:
    """An append-only file of records; mode 0600, since request headers and bodies are in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: IO[bytes] | None = None

    def records(self) -> Iterator[Record]:
        """The records in order. Stops at a torn last record and cuts it off.

        Raises JournalError for a file of another format and for damage that isn't at the end.
        """
        if not self.path.exists():
            return
        size = self.path.stat().st_size
        with self.path.open("rb") as file:
            good = 0
            while good < size:
                record = self._read(file, good, size)
                if record is None:
                    break
                yield record
                good = file.tell()
        if good < size:
            os.truncate(self.path, good)

    def _read(self, file: IO[bytes], start: int, size: int) -> Record | None:
        line = file.readline()
        if not line.endswith(b"\n"):
            return None
        try:
            head = json.loads(line)
            length, version = int(head["length"]), head["format"]
        except (ValueError, KeyError, TypeError) as error:
            raise JournalError(f"{self.path}: no record of this journal at byte {start}: delete the file") from error
        if version != FORMAT:
            raise JournalError(f"{self.path}: format {version}, this program reads {FORMAT}: delete the file")
        body = file.read(length)
        if len(body) < length or file.read(1) != b"\n":
            return None
        if zlib.crc32(body) != head["crc"]:
            if file.tell() == size:
                return None
            raise JournalError(f"{self.path}: the record at byte {start} is damaged: delete the file")
        at = datetime.fromisoformat(head["at"])
        return Record(head["seed"], at, head["status"], head["environ"], body)

    def append(self, record: Record) -> None:
        """Write ``record`` to the operating system; OSError (no space) is the caller's to report."""
        if self._file is None:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            self._file = os.fdopen(descriptor, "ab", buffering=0)
        head = {
            "format": FORMAT,
            "seed": record.seed,
            "at": record.at.isoformat(),
            "status": record.status,
            "environ": record.environ,
            "length": len(record.body),
            "crc": zlib.crc32(record.body),
        }
        data = json.dumps(head).encode() + b"\n" + record.body + b"\n"
        start = self._file.tell() if self._file.seekable() else 0
        written = self._file.write(data)
        if written != len(data):
            os.ftruncate(self._file.fileno(), start)
            raise OSError(28, f"only {written} of {len(data)} bytes could be written", str(self.path))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
