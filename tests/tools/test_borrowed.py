"""Charts, CRDs and stages out of a module cache that these tests lay out themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from srvmod.tools import borrowed, paths, wheels
from srvmod.tools.errors import ToolError


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module cache with one folder for every module; read-only files, as Go leaves them."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(borrowed, "gomod_dir", lambda module: folder / module)
    return folder


def lay(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o444)


GATEWAY = {
    "Chart.yaml": 'name: gateway-helm\nversion: v0.0.0-latest\nappVersion: "latest"\n',
    "values.tmpl.yaml": "image: ${GatewayImage}\npullPolicy: ${GatewayImagePullPolicy}\nother: $(X)\n",
    "charts/crds/crds/gatewayapi-crds.yaml": "kind: CustomResourceDefinition\n",
}


def test_template_of_values_is_filled_into_a_copy(cache: Path) -> None:
    lay(cache / borrowed.ENVOY_GATEWAY / "charts/gateway-helm", GATEWAY)
    chart = borrowed.chart_dir("gateway-helm")
    assert chart.parent == paths.CHARTS
    version = chart.name.removeprefix("gateway-helm-")
    assert (chart / "values.yaml").read_text() == (
        f"image: docker.io/envoyproxy/gateway:{version}\npullPolicy: IfNotPresent\nother: $(X)\n"
    )
    assert (chart / "Chart.yaml").read_text() == f'name: gateway-helm\nversion: {version}\nappVersion: "{version}"\n'
    assert not (chart / "values.tmpl.yaml").exists()
    assert (chart / "charts/crds/crds/gatewayapi-crds.yaml").exists()
    assert borrowed.chart_dir("gateway-helm") == chart
    assert [path.name for path in paths.CHARTS.iterdir()] == [chart.name]


def test_unknown_hole_in_the_values_is_an_error(cache: Path) -> None:
    files = {**GATEWAY, "values.tmpl.yaml": "image: ${GatewayImage}\nnew: ${NewThing}\n"}
    lay(cache / borrowed.ENVOY_GATEWAY / "charts/gateway-helm", files)
    with pytest.raises(ToolError, match="its values ask for NewThing"):
        borrowed.chart_dir("gateway-helm")
    assert list(paths.CHARTS.iterdir()) == []


def test_finished_chart_is_used_in_place(cache: Path) -> None:
    lay(cache / borrowed.KARPENTER / "charts/karpenter", {"Chart.yaml": "name: karpenter\n"})
    assert borrowed.chart_dir("karpenter") == cache / borrowed.KARPENTER / "charts/karpenter"


def test_unknown_and_moved_charts(cache: Path) -> None:
    with pytest.raises(ToolError, match="no chart 'keda'") as caught:
        borrowed.chart_dir("keda")
    assert caught.value.fix == "allowed: gateway-helm, karpenter, karpenter-crd"
    with pytest.raises(ToolError, match=r"expected .*Chart\.yaml; it isn't there"):
        borrowed.chart_dir("karpenter")


def test_crds_in_the_order_in_which_they_are_applied(cache: Path) -> None:
    lay(cache / borrowed.KARPENTER / "pkg/apis/crds", {"b.yaml": "", "a.yaml": "", "doc.md": ""})
    lay(
        cache / borrowed.ENVOY_GATEWAY / "charts/gateway-helm/charts/crds/crds",
        {"gatewayapi-crds.yaml": "", "generated/x.yaml": ""},
    )
    keda = ["keda.sh_scaledobjects.yaml", "keda.sh_triggerauthentications.yaml"]
    prometheus = ["monitoring.coreos.com_podmonitors.yaml", "monitoring.coreos.com_prometheusrules.yaml"]
    lay(cache / borrowed.KEDA / "config/crd/bases", dict.fromkeys([*keda, "keda.sh_scaledjobs.yaml"], ""))
    lay(cache / borrowed.PROMETHEUS_OPERATOR / "example/prometheus-operator-crd", dict.fromkeys(prometheus, ""))
    names = [path.name for path in borrowed.crd_paths()]
    assert names == ["a.yaml", "b.yaml", "gatewayapi-crds.yaml", "x.yaml", *keda, *prometheus]
    with pytest.raises(ToolError, match=r"expected monitoring\.coreos\.com_probes\.yaml in .*; not there"):
        borrowed.prometheus_crds(("probes", "podmonitors"))


def test_stages_without_kustomizations(cache: Path) -> None:
    lay(
        cache / borrowed.KWOK / "kustomize/stage",
        {
            "node/fast/node-initialize.yaml": "",
            "node/fast/kustomization.yaml": "",
            "node/fast/testdata/x.yaml": "",
            "node/heartbeat-with-lease/node-heartbeat-with-lease.yaml": "",
            "pod/fast/pod-ready.yaml": "",
            "pod/chaos/pod-fails.yaml": "",
        },
    )
    names = [path.name for path in borrowed.kwok_stages()]
    assert names == ["node-initialize.yaml", "node-heartbeat-with-lease.yaml", "pod-ready.yaml"]


def test_folder_that_moved_is_named(cache: Path) -> None:
    with pytest.raises(ToolError, match=r"expected YAML files in .*kustomize/stage/node/fast; found none"):
        borrowed.kwok_stages()


def test_wheel_that_is_not_installed() -> None:
    with pytest.raises(ToolError, match="the wheel no-such-wheel isn't installed"):
        wheels._program("no-such-wheel", "bin/x")
    with pytest.raises(ToolError, match="the wheel typer holds no bin/none"):
        wheels._program("typer", "bin/none")
