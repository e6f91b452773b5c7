"""Rendered custom resources against the CRDs of the controllers that the local stack runs: no unknown field."""

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import jsonschema
import pytest
import yaml

from srvmod.infra.render.manifests import files
from srvmod.local.crds import load
from srvmod.tools import crd_paths, prometheus_crds
from tests.infra.environment import ENVIRONMENTS, graph

GROUPS = (
    *("karpenter.sh", "karpenter.k8s.aws", "gateway.envoyproxy.io", "gateway.networking.k8s.io"),
    *("keda.sh", "monitoring.coreos.com"),
)


@cache
def schemas() -> dict[tuple[str, str], dict[str, Any]]:
    """Strict schema by apiVersion and kind."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    with TemporaryDirectory() as folder:
        crds = load([*crd_paths(), *prometheus_crds(("alertmanagerconfigs",))], Path(folder))
    for crd in crds:
        spec = crd["spec"]
        for version in spec["versions"]:
            key = (f"{spec['group']}/{version['name']}", spec["names"]["kind"])
            found[key] = strict(version["schema"]["openAPIV3Schema"])
    return found


def strict(schema: Any) -> Any:
    """The schema with unknown fields refused where the API server would silently drop them."""
    if isinstance(schema, list):
        return [strict(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    out = {key: strict(value) for key, value in schema.items()}
    if out.pop("x-kubernetes-int-or-string", False):
        out.pop("type", None)
    if "properties" in out and isinstance(out["properties"], dict) and out.get("type") == "object":
        open_object = out.get("x-kubernetes-preserve-unknown-fields") or "metadata" in out["properties"]
        if not open_object and "additionalProperties" not in out:
            out["additionalProperties"] = False
    return out


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_custom_resources_fit_their_definitions(env: str) -> None:
    checked = 0
    for name, text in files(graph(env), env).items():
        if not name.endswith(".yaml") or name.startswith("charts/"):
            continue
        document = yaml.load(text, yaml.CSafeLoader)
        if document["apiVersion"].partition("/")[0] not in GROUPS:
            continue
        schema = schemas()[document["apiVersion"], document["kind"]]
        errors = [
            f"{name}: {'.'.join(map(str, error.path))}: {error.message[:200]}"
            for error in jsonschema.Draft7Validator(schema).iter_errors(document)
        ]
        assert errors == []
        checked += 1
    real, topic = env != "local", env in {"staging", "prod"}
    assert checked == 14 + real + topic, "dcgm-exporter's PodMonitor and the alerts' route aren't everywhere"
