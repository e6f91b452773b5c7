"""Applies the CRDs of Karpenter, Gateway API and Envoy Gateway, read from the modules that the tools were built from."""

from __future__ import annotations

import subprocess

from srvmod.local.errors import LocalError
from srvmod.local.paths import State


def apply(state: State) -> None:
    """Server-side apply, once per stack (a marker says that it was done)."""
    from srvmod.tools import crd_paths, kubectl

    marker = state.run / "crds-applied"
    if marker.exists():
        return
    argv = [str(kubectl()), "--kubeconfig", str(state.kubeconfig), "apply", "--server-side", "--force-conflicts"]
    for path in crd_paths():
        argv += ["-f", str(path)]
    result = subprocess.run(argv, capture_output=True, text=True, check=False)
    if result.returncode:
        raise LocalError(f"CRDs were refused: {result.stderr.strip()[-800:]}", "run `srvmod local up` again")
    marker.touch()
