"""The list of a revision's files: what manifest.json holds."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, Final

from weight_cache.errors import ManifestError

NAME: Final = "manifest.json"
READY: Final = "READY"
SCHEMA: Final = 1
MODEL_FILES: Final = ("config.json", "*.safetensors")
"""What an engine can't start without; `lacking` says how patterns are read."""
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_REVISION: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_BLOCK: Final = 4 * 2**20  # bytes read at a time
_RESERVED: Final = (".part", ".parts", ".tmp")


@dataclass(frozen=True)
class FileEntry:
    """One file: path relative to the revision, size in bytes, SHA-256 as 64 hex digits."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """A revision and its files, and the digest of the very bytes it was read from."""

    revision: str
    files: tuple[FileEntry, ...]
    digest: str
    raw: bytes

    @property
    def size(self) -> int:
        """All files together, bytes."""
        return sum(entry.size for entry in self.files)


def check_revision(revision: str) -> str:
    """A revision names a folder and a part of a key: letters, digits, dot, dash, underscore. Raises ManifestError."""
    if not _REVISION.fullmatch(revision) or revision.endswith(".partial"):
        raise ManifestError(
            f"revision {revision!r}: allowed are letters, digits, '.', '_', '-', at most 128, no '.partial' at the end"
        )
    return revision


def _check_path(path: Any, where: str) -> str:
    if not isinstance(path, str) or not path or "\\" in path or "\0" in path:
        raise ManifestError(f"{where}: path {path!r} is not a relative path with forward slashes")
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or str(pure) != path or path == ".":
        raise ManifestError(f"{where}: path {path!r} must be relative and must not leave the revision's folder")
    if path in {NAME, READY} or path.endswith(_RESERVED):
        raise ManifestError(f"{where}: path {path!r} is a name that the cache itself uses")
    return path


def parse(raw: bytes, revision: str, where: str) -> Manifest:
    """Read manifest.json. `where` is its address, for messages. Raises ManifestError naming the entry."""
    try:
        value = json.loads(raw)
    except ValueError as error:
        raise ManifestError(f"{where}: not JSON: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("files"), list):
        raise ManifestError(f"{where}: expected an object with schema, revision and a list of files")
    if value.get("schema") != SCHEMA:
        raise ManifestError(f"{where}: schema {value.get('schema')!r}; this agent knows {SCHEMA}")
    if value.get("revision") != revision:
        raise ManifestError(f"{where}: it is for revision {value.get('revision')!r}, asked was {revision!r}")
    files: list[FileEntry] = []
    for index, entry in enumerate(value["files"]):
        place = f"{where}: files[{index}]"
        if not isinstance(entry, dict):
            raise ManifestError(f"{place}: expected an object with path, sizeBytes and sha256")
        size, sha256 = entry.get("sizeBytes"), entry.get("sha256")
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ManifestError(f"{place}: sizeBytes {size!r} must be a whole number of bytes")
        if not isinstance(sha256, str) or not _SHA256.fullmatch(sha256):
            raise ManifestError(f"{place}: sha256 {sha256!r} must be 64 lower-case hex digits")
        files.append(FileEntry(_check_path(entry.get("path"), place), size, sha256))
    _check_names(files, where)
    return Manifest(revision, tuple(files), hashlib.sha256(raw).hexdigest(), raw)


def _check_names(files: list[FileEntry], where: str) -> None:
    if not files:
        raise ManifestError(f"{where}: it lists no files")
    names = {entry.path for entry in files}
    if len(names) != len(files):
        double = sorted(name for name in names if sum(entry.path == name for entry in files) > 1)
        raise ManifestError(f"{where}: listed twice: {', '.join(double)}")
    for name in names:
        for parent in PurePosixPath(name).parents:
            if str(parent) in names:
                raise ManifestError(f"{where}: {str(parent)!r} is listed as a file and as a folder of {name!r}")


def lacking(found: Manifest, required: Iterable[str]) -> list[str]:
    """The required patterns that no file of the manifest matches; wildcards stand in names, not in folders."""
    paths = [PurePosixPath(entry.path) for entry in found.files]
    wanted = [PurePosixPath(pattern) for pattern in required]
    return [
        str(pattern)
        for pattern in wanted
        if not any(path.parent == pattern.parent and fnmatchcase(path.name, pattern.name) for path in paths)
    ]


def check_required(found: Manifest, required: Iterable[str], where: str) -> None:
    """Raise ManifestError that names everything engines need and the manifest doesn't list."""
    absent = lacking(found, required)
    if absent:
        raise ManifestError(
            f"{where}: it doesn't list {', '.join(absent)}, which engines need; "
            f"add the files and make {NAME} again, as a new revision where nodes have this one"
        )


def _nothing() -> None:
    return


def file_sha256(path: Path, pulse: Callable[[], None] = _nothing) -> str:
    """SHA-256 of a file's content, hex. `pulse` is called before each block of 4 MiB and may raise to give up.

    Raises OSError.
    """
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while True:
            pulse()
            block = file.read(_BLOCK)
            if not block:
                return digest.hexdigest()
            digest.update(block)


def build(folder: Path, revision: str, required: Sequence[str] = ()) -> bytes:
    """The manifest of a folder, as bytes of manifest.json; the same folder gives the same bytes.

    Raises ManifestError when the folder is empty, lacks a required file, holds a link to a folder or a name that the
    cache uses, OSError when a part of it can't be read.
    """
    check_revision(revision)
    if not folder.is_dir():
        raise ManifestError(f"{folder}: no such folder")
    entries: list[dict[str, Any]] = []
    for path in sorted(_files(folder)):
        name = path.relative_to(folder).as_posix()
        if name in {NAME, READY}:
            continue
        if not path.is_file():
            raise ManifestError(f"{path}: neither file nor folder")
        entries.append({"path": name, "sizeBytes": path.stat().st_size, "sha256": file_sha256(path)})
    value = {"schema": SCHEMA, "revision": revision, "files": sorted(entries, key=lambda entry: str(entry["path"]))}
    raw = (json.dumps(value, indent=1) + "\n").encode()
    check_required(parse(raw, revision, str(folder)), required, str(folder))
    return raw


def _files(folder: Path) -> Iterator[Path]:
    """Everything in a folder that isn't a folder. Raises ManifestError for links to folders, OSError."""
    linked: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=_raise):
        linked += [str(path) for name in folders if (path := Path(parent, name)).is_symlink()]
        yield from (Path(parent, name) for name in names)
    if linked:
        raise ManifestError(
            f"{', '.join(sorted(linked))}: a link to a folder, whose files would be left out; "
            "put a copy of the folder in its place (cp -rL), or remove the link"
        )


def _raise(error: OSError) -> None:
    raise error  # os.walk would leave the folder out
