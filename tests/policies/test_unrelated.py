"""Manifests that have nothing to do with language models: no finding, whatever they look like."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from srvmod.policies.check import judged
from srvmod.policies.config import Config
from srvmod.policies.readers.world import of_paths, of_text
from srvmod.policies.report import render
from srvmod.tools import chart_dir, ensure

HERE = Path(__file__).parent
CHARTS = {
    "karpenter": ["--set", "settings.clusterName=c"],
    "gateway-helm": [],
}
"""Charts of our tools' own modules, with the values that they don't render without."""
PUBLIC = {
    "cert-manager": ("github.com/cert-manager/cert-manager@v1.21.2", "deploy/charts/cert-manager"),
    "cilium": ("github.com/cilium/cilium@v1.20.2", "install/kubernetes/cilium"),
    "dapr": ("github.com/dapr/dapr@v1.14.0", "charts/dapr"),
    "descheduler": ("sigs.k8s.io/descheduler@v0.36.0", "charts/descheduler"),
    "flagger": ("github.com/fluxcd/flagger@v1.36.1", "charts/flagger"),
    "gatekeeper": ("github.com/open-policy-agent/gatekeeper/v3@v3.23.1", "charts/gatekeeper"),
    "gpu-operator": ("github.com/NVIDIA/gpu-operator@v0.0.0-20250917190837-d73a0086a6ba", "deployments/gpu-operator"),
    "ingress-nginx": ("k8s.io/ingress-nginx@v0.0.0-20240708192948-52c50467d67d", "charts/ingress-nginx"),
    "kueue": ("sigs.k8s.io/kueue@v0.17.0", "charts/kueue"),
    "kyverno-policies": ("github.com/kyverno/kyverno@v1.19.1", "charts/kyverno-policies"),
    "metrics-server": ("sigs.k8s.io/metrics-server@v0.9.0", "charts/metrics-server"),
}
"""Charts of other projects, whose Go modules hold them: module at its version, and the folder in it."""


@pytest.mark.parametrize("file", sorted((HERE / "unrelated").glob("*.yaml")), ids=lambda file: file.stem)
@pytest.mark.parametrize("whole", [False, True])
def test_no_finding(file: Path, whole: bool) -> None:
    world = of_paths([str(file)])
    result = judged(world, Config(whole=whole))
    assert world.objects
    assert not result.findings, render(result, "text")
    assert not result.unread, render(result, "text")


def test_there_are_ten() -> None:
    assert len(list((HERE / "unrelated").glob("*.yaml"))) >= 10


@pytest.mark.parametrize("name", sorted(CHARTS))
def test_public_charts_crds_have_no_finding(name: str) -> None:
    folder = chart_dir(name)
    files = [str(path) for path in sorted(folder.rglob("crds/**/*.yaml")) if not re.search(r"\{\{", path.read_text())]
    files += [str(path) for path in sorted(folder.rglob("*.yaml")) if path.name in {"values.yaml", "Chart.yaml"}]
    result = judged(of_paths(files), Config())
    assert files
    assert not result.findings, render(result, "text")
    assert not result.unread, render(result, "text")


def folder_of(name: str) -> Path:
    """A chart's folder, where it lies in the module cache; its module is fetched when it isn't there yet."""
    if name in CHARTS:
        return chart_dir(name)
    module, folder = PUBLIC[name]
    go = shutil.which("go")
    assert go is not None, "the charts come from Go modules"
    done = subprocess.run(
        [go, "mod", "download", "-json", module], cwd="/", capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return Path(json.loads(done.stdout)["Dir"]) / folder


@pytest.mark.acceptance
@pytest.mark.parametrize("name", sorted({*CHARTS, *PUBLIC}))
def test_public_charts_rendered_have_no_finding(name: str) -> None:
    command = [str(ensure(["helm"])["helm"]), "template", name, str(folder_of(name)), *CHARTS.get(name, [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    world = of_text(done.stdout)
    for whole in (False, True):
        result = judged(world, Config(whole=whole))
        assert not result.findings, render(result, "text")
        assert not result.unread, render(result, "text")
    assert world.objects > 3


def test_ten_charts_are_public() -> None:
    assert len({*CHARTS, *PUBLIC}) >= 10
