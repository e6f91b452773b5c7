"""Which images the nodes run, and what is in them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from srvmod.local.nodes.config import PAUSE_IMAGE
from srvmod.local.nodes.images import python
from srvmod.local.nodes.images.layer import Layer, PackingError
from srvmod.local.paths import REPO
from srvmod.tools import envoy, golang

PLUGIN_MODULE = REPO / "local" / "nodes" / "pretend-gpu-plugin"
ENGINE = REPO / "local" / "engine"
WEIGHT_CACHE = REPO / "images" / "weight-cache"
# The agent talks to these alone; the same list stands in its Dockerfile.
_BOTOCORE_SERVICES = frozenset({"s3", "sts", "sso", "sso-oidc"})
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_PYTHON_ENV = {"PATH": _PATH, "PYTHONPATH": python.APP, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONUNBUFFERED": "1"}


@dataclass(frozen=True)
class Recipe:
    """One image: its full name, its layers from the lowest on, and how it starts."""

    name: str
    layers: Sequence[Callable[[], Layer]]
    entrypoint: Sequence[str]
    env: Mapping[str, str] = field(default_factory=lambda: {"PATH": _PATH})


def recipes(tools: Mapping[str, Path], scratch: Path) -> list[Recipe]:
    """All images, smallest first. `tools` are the built programs by name; `scratch` takes what is compiled here.

    The names of Envoy's images are those that Envoy Gateway 1.9.1 asks for.
    """
    base = _once(python.interpreter)
    return [
        Recipe(PAUSE_IMAGE, [lambda: _pause(scratch)], ["/pause"]),
        Recipe(
            "docker.io/envoyproxy/envoy:distroless-v1.39.1",
            [lambda: _single("/usr/local/bin/envoy", envoy())],
            ["/usr/local/bin/envoy"],
        ),
        Recipe(
            "docker.io/envoyproxy/gateway:v1.9.1",
            [lambda: _single("/usr/local/bin/envoy-gateway", tools["envoy-gateway"])],
            ["/usr/local/bin/envoy-gateway"],
        ),
        Recipe(
            "docker.io/srvmod/engine:local",
            [
                base,
                lambda: python.packages(ENGINE / "requirements.txt"),
                lambda: python.rooms(["contract", "capacity"]),
                lambda: python.program(ENGINE, ["srvmod_engine"]),
            ],
            ["/usr/bin/env", "python3", "-m", "srvmod_engine"],
            _PYTHON_ENV,
        ),
        Recipe(
            "docker.io/srvmod/weight-cache:local",
            [
                base,
                lambda: python.packages(WEIGHT_CACHE / "requirements.txt", _BOTOCORE_SERVICES),
                lambda: python.program(WEIGHT_CACHE, ["weight_cache"]),
            ],
            ["/usr/bin/env", "python3", "-m", "weight_cache"],
            _PYTHON_ENV,
        ),
    ]


def _once(make: Callable[[], Layer]) -> Callable[[], Layer]:
    """Builds a layer that several images share only once."""
    made: list[Layer] = []

    def layer() -> Layer:
        if not made:
            made.append(make())
        return made[0]

    return layer


def _single(target: str, binary: Path) -> Layer:
    """One program with its libraries, as in a distroless image."""
    layer = Layer(linked=True)
    layer.file(target, binary)
    python.system_files(layer)
    return layer


def _pause(scratch: Path) -> Layer:
    """The sandbox's process, static, compiled here in a second."""
    binary = scratch / "pause"
    go = golang.require("1.26", "the image of pods' sandboxes")
    command = [go, "build", "-trimpath", "-ldflags", "-s -w", "-o", str(binary), "./pause"]
    sources = sorted((PLUGIN_MODULE / "pause").glob("*.go"))
    newest = max(source.stat().st_mtime_ns for source in sources)
    if not binary.exists() or binary.stat().st_mtime_ns < newest:
        answer = subprocess.run(
            command,
            cwd=PLUGIN_MODULE,
            env=golang.environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        if answer.returncode != 0:
            raise PackingError(f"{PLUGIN_MODULE}/pause: {answer.stderr.strip()}")
    layer = Layer()
    layer.file("/pause", binary)
    return layer
