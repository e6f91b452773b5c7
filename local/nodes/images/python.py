"""Layers with Python and packages, taken from the interpreter that runs this."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from srvmod.local.nodes.images.layer import LOADER_CACHE, Layer, PackingError
from srvmod.local.paths import REPO

APP = "/app"
"""Packages and programs lie here; PYTHONPATH of the images names it."""
_NOT_NEEDED = (
    "test",
    "tests",
    "idlelib",
    "idle_test",
    "tkinter",
    "_tkinter.*",
    "turtledemo",
    "turtle.py",
    "ensurepip",
    "lib2to3",
    "pydoc_data",
    "site-packages",
    "dist-packages",
    "config-3.*",
    "_test*.so",
    "_ctypes_test.*",
    "nis.*",
)
_SHELL_TOOLS = ("env", "printenv", "cat", "ls", "sleep", "mkdir", "test", "id")


def interpreter() -> Layer:
    """Python itself with its standard library, a shell, a few tools, and what name look-ups need."""
    layer = Layer(linked=True)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix, "installed_base": sys.base_prefix}
    base["installed_platbase"] = sys.base_exec_prefix
    program = f"{sys.base_exec_prefix}/bin/{version}"
    layer.file(program, Path(program) if Path(program).exists() else Path(sys.executable))
    for name in ("python", "python3"):
        layer.link(f"/usr/local/bin/{name}", program)
    for scheme in ("stdlib", "platstdlib"):
        folder = sysconfig.get_path(scheme, vars=base)
        layer.tree(folder, Path(folder), without=_NOT_NEEDED)
    layer.file("/bin/sh", Path("/bin/sh"))
    for tool in _SHELL_TOOLS:
        path = shutil.which(tool)
        if path is None:
            raise PackingError(f"{tool}: not on PATH; install coreutils")
        layer.file(f"/usr/bin/{tool}", Path(path))
    system_files(layer)
    return layer


def system_files(layer: Layer) -> None:
    """Users, name look-ups, the loader's cache and a /tmp that everybody may write to."""
    layer.text("/etc/passwd", "root:x:0:0:root:/:/bin/sh\nnonroot:x:65532:65532:nonroot:/tmp:/bin/sh\n")
    layer.text("/etc/group", "root:x:0:\nnonroot:x:65532:\n")
    layer.text("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
    if Path(LOADER_CACHE).exists():
        layer.file(LOADER_CACHE, Path(LOADER_CACHE))
    layer.folder("/tmp", 0o1777)


def packages(requirements: Path, botocore_services: frozenset[str] = frozenset()) -> Layer:
    """The packages of a requirements file (`name==version` a line), copied from this environment.

    Of botocore's descriptions of every AWS service (most of its size) only `botocore_services` are taken.
    Raises PackingError that names a package that is missing here or has another version.
    """
    layer = Layer(linked=True)
    for line in requirements.read_text().splitlines():
        requirement = line.partition("#")[0].strip()
        if requirement:
            _package(layer, requirement, requirements)
    data = PurePosixPath(APP, "botocore", "data")
    for target in [path for path in layer.files if data in path.parents]:
        service = target.relative_to(data).parts[0]
        if len(target.relative_to(data).parts) > 1 and service not in botocore_services:
            del layer.files[target]
    return layer


def _package(layer: Layer, requirement: str, where: Path) -> None:
    name, _, version = (part.strip() for part in requirement.partition("=="))
    if not version or not name:
        raise PackingError(f"{where}: {requirement!r}; allowed are lines `name==version`")
    name = name.partition("[")[0]
    try:
        distribution = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        raise PackingError(f"{where}: {requirement} isn't installed here; `make` installs it") from None
    if distribution.version != version:
        raise PackingError(
            f"{where}: {name} {version} is asked for, {distribution.version} is installed here; "
            "make the pins of this file and of the environment the same"
        )
    for file in distribution.files or ():
        if ".." in file.parts or file.is_absolute():
            continue  # scripts, which name this environment's interpreter
        path = Path(str(distribution.locate_file(file)))
        if path.is_file() and not (
            path.suffix == ".pyc" and not path.name.endswith(f"{sys.implementation.cache_tag}.pyc")
        ):
            layer.file(f"{APP}/{file.as_posix()}", path)


def rooms(names: Iterable[str]) -> Layer:
    """Rooms of the product under their installed names, for programs in images that share code with it."""
    package = REPO / "src" / "srvmod"
    layer = Layer()
    layer.file(f"{APP}/srvmod/__init__.py", package / "__init__.py")
    for name in names:
        layer.tree(f"{APP}/srvmod/{name}", package / name, without=("__pycache__",))
    return layer


def program(folder: Path, names: Iterable[str]) -> Layer:
    """Our own packages, as folders beside each other in `folder`."""
    layer = Layer()
    for name in names:
        layer.tree(f"{APP}/{name}", folder / name, without=("__pycache__",))
    return layer
