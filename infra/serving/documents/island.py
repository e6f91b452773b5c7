"""The island check in an engine's pod: a mounted file that comes first in the container's command.

Not in an image: the engine's is its authors', and one of our own would have to follow each of their releases.
"""

import hashlib
from pathlib import Path
from typing import Any

from srvmod.contract import P5_48XLARGE
from srvmod.infra.labels import PREFIX, Object, metadata
from srvmod.infra.serving import island_check

NAME = "island-check"
"""The ConfigMap and its volume."""
FOLDER = "/srvmod"
FILE = "island_check.py"
SOURCE = Path(island_check.__file__).read_text(encoding="utf-8")


def config_map(namespace: str) -> Object:
    """ConfigMap with the check."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(NAME, namespace),
        "data": {FILE: SOURCE},
    }


def annotations() -> dict[str, str]:
    """The check's digest on the pods: engines are replaced when it changes, not at some later restart."""
    return {f"{PREFIX}{NAME}": hashlib.sha256(SOURCE.encode()).hexdigest()[:16]}


def volume() -> dict[str, Any]:
    """The ConfigMap as a volume."""
    return {"name": NAME, "configMap": {"name": NAME}}


def mount() -> dict[str, Any]:
    """The volume in the engine's container."""
    return {"name": NAME, "mountPath": FOLDER, "readOnly": True}


def command(gpus: int, *, pretended: bool) -> list[str]:
    """The words before the engine's program, which the check becomes; the program's own stay in `args`, where gates
    read them. `pretended` also passes the pretended machines of a simulated stack."""
    gpu = P5_48XLARGE.gpu
    return [
        "/usr/bin/env",
        "python3",
        "-I",
        f"{FOLDER}/{FILE}",
        f"--gpus={gpus}",
        f"--model={gpu.name}",
        f"--nvlinks={gpu.nvlinks}",
        *(["--allow-pretended"] if pretended else []),
        "--",
    ]
