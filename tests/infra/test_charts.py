"""Values and versions of charts against the charts themselves, as far as they lie in a Go module."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from srvmod.infra import versions
from srvmod.infra.platform.documents import charts
from srvmod.tools import chart_dir
from srvmod.tools.catalogue import select

VALUES = {
    "karpenter": charts.karpenter("c", "q", "karpenter", isolated=True),
    "gateway-helm": charts.envoy_gateway("mirror/gateway:v1"),
}


def unknown(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Keys of ours that the chart doesn't have; an empty mapping of theirs takes any."""
    if not isinstance(ours, dict) or not isinstance(theirs, dict) or not theirs:
        return []
    found: list[str] = []
    for key, value in ours.items():
        if key not in theirs and not path.endswith("nodeSelector."):
            found.append(f"{path}{key}")
        else:
            found += unknown(value, theirs.get(key), f"{path}{key}.")
    return found


@pytest.mark.parametrize("name", VALUES)
def test_charts_know_all_values(name: str) -> None:
    theirs = yaml.safe_load((Path(chart_dir(name)) / "values.yaml").read_text(encoding="utf-8"))
    assert unknown(VALUES[name], theirs) == []


def test_an_unknown_value_is_noticed() -> None:
    assert unknown({"a": {"b": 1}, "c": 2}, {"a": {"x": 1}}) == ["a.b", "c"]


def test_versions_are_those_of_the_local_stack() -> None:
    local = {tool.name: tool.version.removeprefix("v") for tool in select(["karpenter-aws", "envoy-gateway"])}
    assert versions.KARPENTER.version == versions.KARPENTER_CRDS.version == local["karpenter-aws"]
    assert versions.ENVOY_GATEWAY.version.removeprefix("v") == local["envoy-gateway"]


def test_kubernetes_is_that_of_the_local_stack() -> None:
    (server,) = select(["kube-apiserver"])
    assert server.version.removeprefix("v").startswith(f"{versions.KUBERNETES}.")


def test_nothing_is_unpinned() -> None:
    for name, value in vars(versions).items():
        if isinstance(value, versions.Chart):
            assert value.version[-1].isdigit(), name
        if isinstance(value, versions.Image):
            assert "latest" not in value.tag, name
