"""Packs the images with crane into archives that containerd imports, and keeps them for the next start."""

from __future__ import annotations

import contextlib
import hashlib
import json
import platform
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from srvmod.local.nodes.images.layer import Layer, PackingError
from srvmod.local.nodes.images.recipes import Recipe, recipes
from srvmod.local.paths import State

_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
REGISTRY_SECONDS = 10.0


@dataclass(frozen=True)
class Image:
    """A packed image. `fingerprint` changes with its content; `archive` is a docker-style tar file."""

    name: str
    fingerprint: str
    archive: Path


def folder(state: State) -> Path:
    return state.cache / "images"


def packed(state: State) -> list[Image]:
    """The images that `pack` left, in its order. Raises FileNotFoundError before the first `pack`."""
    entries = json.loads((folder(state) / "images.json").read_text())
    return [Image(entry["name"], entry["fingerprint"], folder(state) / entry["archive"]) for entry in entries]


def pack(state: State, tools: Mapping[str, Path], progress: Callable[[str], None] = lambda line: None) -> list[Image]:
    """Packs what changed since the last time and returns all images. Archives that nobody uses any more are removed.

    `tools` needs crane and envoy-gateway. Raises PackingError.
    """
    store = folder(state)
    store.mkdir(parents=True, exist_ok=True)
    images: list[Image] = []
    with contextlib.ExitStack() as stack:
        registry: str | None = None
        for recipe in recipes(tools, store):
            layers = [make() for make in recipe.layers]
            image = Image(recipe.name, *_place(store, recipe, layers))
            if not image.archive.exists():
                progress(f"{recipe.name}: packing")
                registry = registry or stack.enter_context(_registry(tools["crane"], store / "registry"))
                _pack(tools["crane"], registry, recipe, _written(store, layers), image.archive)
            images.append(image)
    index = [{"name": i.name, "fingerprint": i.fingerprint, "archive": i.archive.name} for i in images]
    partial = store / "images.json.new"
    partial.write_text(json.dumps(index, indent=1))
    partial.replace(store / "images.json")
    used = {image.archive.name for image in images} | {"images.json", "pause"}
    for leftover in store.iterdir():
        if leftover.name not in used:
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    return images


def _place(store: Path, recipe: Recipe, layers: Sequence[Layer]) -> tuple[str, Path]:
    """The image's fingerprint, and the archive's path that follows from it."""
    digest = hashlib.sha256(repr((recipe.name, recipe.entrypoint, sorted(recipe.env.items()))).encode())
    for layer in layers:
        digest.update(layer.fingerprint().encode())
    fingerprint = digest.hexdigest()
    short = recipe.name.rpartition("/")[2].replace(":", "-")
    return fingerprint, store / f"{short}-{fingerprint[:12]}.tar"


def _written(store: Path, layers: Sequence[Layer]) -> list[Path]:
    """The layers as tar files; a layer that several images share is written once."""
    archives = []
    for layer in layers:
        archive = store / f"layer-{layer.fingerprint()[:16]}.tar"
        if not archive.exists():
            layer.write(archive)
        archives.append(archive)
    return archives


def _pack(crane: Path, registry: str, recipe: Recipe, layers: Sequence[Path], archive: Path) -> None:
    """crane can change an image's configuration only in a registry: hence its own, on loopback, for a moment."""
    draft = f"{registry}/{recipe.name.partition('/')[2]}"
    _run(crane, "append", "--oci-empty-base", "--new_tag", draft, *(f"--new_layer={layer}" for layer in layers))
    partial = archive.with_name(archive.name + ".new")
    architecture = _ARCHITECTURES.get(platform.machine(), platform.machine())
    _run(
        crane,
        "mutate",
        draft,
        f"--tag={recipe.name}",
        f"--output={partial}",
        f"--set-platform=linux/{architecture}",
        f"--entrypoint={','.join(recipe.entrypoint)}",
        *(f"--env={name}={value}" for name, value in sorted(recipe.env.items())),
    )
    partial.replace(archive)


def _run(crane: Path, *arguments: str) -> None:
    answer = subprocess.run([str(crane), *arguments], capture_output=True, text=True, check=False)
    if answer.returncode != 0:
        raise PackingError(f"crane {arguments[0]}: {answer.stderr.strip()}")


@contextlib.contextmanager
def _registry(crane: Path, disk: Path) -> Iterator[str]:
    """crane's registry on a free loopback port; yields host:port."""
    disk.mkdir(exist_ok=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    command = [str(crane), "registry", "serve", f"--address={address}", f"--disk={disk}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _await(address, process)
        yield address
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(disk, ignore_errors=True)


def _await(address: str, process: subprocess.Popen[bytes]) -> None:
    host, _, port = address.partition(":")
    deadline = time.monotonic() + REGISTRY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection((host, int(port)), timeout=1):
            return
        time.sleep(0.02)
    raise PackingError(f"crane registry serve: no answer on {address} within {REGISTRY_SECONDS} s")
