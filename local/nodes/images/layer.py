"""One layer of an image: which file of this machine stands where in the image."""

from __future__ import annotations

import fnmatch
import hashlib
import importlib.util
import io
import os
import py_compile
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

ELF_MAGIC = b"\x7fELF"
_LDD_LINE = re.compile(r"(?:=> )?(/\S+) \(0x")
_LDD_MISSING = re.compile(r"(\S+) => not found")
LOADER_CACHE = "/etc/ld.so.cache"
BYTECODE = importlib.util.cache_from_source("x.py").removeprefix("__pycache__/x")  # ".cpython-311.pyc"


class PackingError(Exception):
    """An image can't be packed from this machine's files; the message names the file and what to do."""


@dataclass
class Layer:
    """Paths in the image (absolute) and what stands there. Later entries replace earlier ones."""

    files: dict[PurePosixPath, Path] = field(default_factory=dict)
    texts: dict[PurePosixPath, bytes] = field(default_factory=dict)
    links: dict[PurePosixPath, str] = field(default_factory=dict)
    folders: dict[PurePosixPath, int] = field(default_factory=dict)
    linked: bool = False
    """Whether `write` adds the shared libraries that the programs need, at the paths they have here."""

    def file(self, target: str, source: Path) -> None:
        """Puts a file, followed through links, at `target`."""
        if not source.is_file():
            raise PackingError(f"{source}: not a file; it belongs at {target} in an image")
        self.files[PurePosixPath(target)] = source.resolve()

    def text(self, target: str, content: str) -> None:
        self.texts[PurePosixPath(target)] = content.encode()

    def link(self, target: str, to: str) -> None:
        self.links[PurePosixPath(target)] = to

    def folder(self, target: str, mode: int = 0o755) -> None:
        """An empty folder, such as /tmp with mode 0o1777."""
        self.folders[PurePosixPath(target)] = mode

    def tree(self, target: str, source: Path, without: Iterable[str] = ()) -> None:
        """Puts a folder's files below `target`; `without` are patterns of names to leave out."""
        if not source.is_dir():
            raise PackingError(f"{source}: not a folder; it belongs at {target} in an image")
        left_out = re.compile("|".join(fnmatch.translate(pattern) for pattern in without) or r"(?!)")
        for folder, subfolders, names in os.walk(source):
            subfolders[:] = sorted(name for name in subfolders if not left_out.match(name))
            for name in sorted(names):
                path = Path(folder) / name
                if not left_out.match(name) and _wanted(path):
                    self.files[PurePosixPath(target) / path.relative_to(source).as_posix()] = path.resolve()

    def fingerprint(self) -> str:
        """Changes when any content may have changed (sizes and modification times; no file is read)."""
        digest = hashlib.sha256()
        # the loader's cache changes whenever a library is installed, so the libraries need not be looked up
        cache = [(PurePosixPath(LOADER_CACHE), Path(LOADER_CACHE))] if self.linked else []
        for target, source in [*cache, *sorted(self.files.items())]:
            if source == Path(LOADER_CACHE) and not source.exists():
                continue
            stat = source.stat()
            digest.update(f"{target}\0{source}\0{stat.st_size}\0{stat.st_mtime_ns}\0{stat.st_mode}\n".encode())
        for part in (self.texts, self.links, self.folders):
            digest.update(repr(sorted(part.items())).encode())
        return digest.hexdigest()

    def write(self, archive: Path) -> None:
        """Writes the layer as a tar file: sorted, owned by root, the same bytes for the same files."""
        if self.linked:
            programs = sorted({path for path in self.files.values() if _is_elf(path)})
            libraries = {PurePosixPath(path): Path(path).resolve() for path in linked_libraries(programs)}
            replace(self, files=libraries | self.files, linked=False).write(archive)
            return
        partial = archive.with_name(archive.name + ".new")
        with tarfile.open(partial, "w", format=tarfile.GNU_FORMAT) as tar, tempfile.TemporaryDirectory() as scratch:
            for folder in self._all_folders():
                entry = tarfile.TarInfo(str(folder).lstrip("/"))
                entry.type, entry.mode = tarfile.DIRTYPE, self.folders.get(folder, 0o755)
                tar.addfile(entry)
            for target, link in sorted(self.links.items()):
                entry = tarfile.TarInfo(str(target).lstrip("/"))
                entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, link, 0o777
                tar.addfile(entry)
            for target, content in sorted(self.texts.items()):
                _add(tar, target, content, 0, 0o644)
            for target, source in sorted(self.files.items()):
                stat = source.stat()
                mode = 0o755 if stat.st_mode & 0o100 else 0o644
                # bytecode names its source's modification time in seconds: keep it, or Python compiles again
                _add(tar, target, source.read_bytes(), int(stat.st_mtime), mode)
                for compiled, code in self._bytecode(target, source, Path(scratch)):
                    _add(tar, compiled, code, 0, 0o644)
        partial.replace(archive)

    def _all_folders(self) -> list[PurePosixPath]:
        folders = set(self.folders)
        for target in [*self.files, *self.texts, *self.links, *self.folders]:
            folders |= set(target.parents)
        return sorted(folders - {PurePosixPath("/")}, key=lambda path: (len(path.parts), path))

    def _bytecode(self, target: PurePosixPath, source: Path, scratch: Path) -> Iterator[tuple[PurePosixPath, bytes]]:
        """Bytecode for a module that has none: containers can't write it, and would compile on each start."""
        if target.suffix != ".py":
            return
        compiled = target.parent / "__pycache__" / f"{target.stem}{BYTECODE}"
        if compiled in self.files:
            return
        try:
            output = scratch / "module.pyc"
            py_compile.compile(str(source), cfile=str(output), dfile=str(target), doraise=True)
        except (py_compile.PyCompileError, SyntaxError, ValueError):
            return  # templates and tests of other Pythons lie among the modules
        yield compiled, output.read_bytes()


def _wanted(path: Path) -> bool:
    if path.suffix == ".pyc":
        return path.name.endswith(BYTECODE)
    return path.suffix not in (".a", ".o") and path.is_file()


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == ELF_MAGIC


def _add(tar: tarfile.TarFile, target: PurePosixPath, content: bytes, mtime: int, mode: int) -> None:
    entry = tarfile.TarInfo(str(target).lstrip("/"))
    entry.size, entry.mtime, entry.mode = len(content), mtime, mode
    tar.addfile(entry, io.BytesIO(content))


def linked_libraries(programs: Iterable[Path]) -> list[str]:
    """Absolute paths of the shared libraries (loader included) that the ELF files need, as `ldd` finds them.

    Raises PackingError that names a library that isn't there.
    """
    found: set[str] = set()
    for program in programs:
        answer = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
        if answer.returncode != 0 or "statically linked" in answer.stdout:
            continue  # a static program has no libraries
        if missing := _LDD_MISSING.search(answer.stdout):
            raise PackingError(f"{program}: needs {missing[1]}, which isn't installed; install it, then run again")
        found |= set(_LDD_LINE.findall(answer.stdout))
    return sorted(found)
