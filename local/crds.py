"""Applies the CRDs of Karpenter, Gateway API, Envoy Gateway, KEDA and the Prometheus operator, from pinned modules.

KEDA and Prometheus don't run here; with their CRDs the API server judges the program's objects as it does anywhere.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from srvmod.local.api import Api, ApiError
from srvmod.local.errors import LocalError
from srvmod.local.paths import State

AT_ONCE = 4
TIMEOUT_SECONDS = 120.0
"""The API server compiles a CRD's rules before it answers: seconds on a busy machine."""


_Base: type[yaml.SafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):
    """YAML as Kubernetes reads it: `=` is a text (an enum of the Prometheus operator has it), not YAML 1.1's value."""


def _text(loader: _Loader, node: yaml.ScalarNode) -> str:
    return loader.construct_scalar(node)


_Loader.add_constructor("tag:yaml.org,2002:value", _text)


def load(files: Sequence[Path], cache: Path) -> list[dict[str, Any]]:
    """The CRDs in `files`, parsed once: 4 MB of YAML take seconds, the same as JSON a tenth of one."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    cached = cache / f"crds-{digest.hexdigest()[:16]}.json"
    if not cached.exists():
        documents = [d for file in files for d in yaml.load_all(file.read_text(), _Loader)]
        part = cached.with_suffix(".part")
        part.write_text(json.dumps([d for d in documents if d and d["kind"] == "CustomResourceDefinition"]))
        part.replace(cached)
    return json.loads(cached.read_text())


def apply(state: State) -> None:
    """Create what isn't there, once per stack (a marker says that it was done). A stack lives with one set of tools."""
    from srvmod.tools import crd_paths

    if state.crds_applied.exists():
        return
    api = Api(state.kubeconfig, TIMEOUT_SECONDS)

    def create(crd: dict[str, Any]) -> None:
        try:
            api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd)
        except ApiError as error:
            if error.status != 409:
                raise LocalError(
                    f"CRD {crd['metadata']['name']} was refused: {str(error)[:600]}", "run `srvmod local up` again"
                ) from error

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(create, load(crd_paths(), state.cache)))
    state.crds_applied.touch()
