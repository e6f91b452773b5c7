"""Manifests that have nothing to do with language models: no finding, whatever they look like."""

from __future__ import annotations

import re
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
"""Charts that lie in the Go module cache, with the values that they don't render without."""


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


@pytest.mark.acceptance
@pytest.mark.parametrize("name", sorted(CHARTS))
def test_public_charts_rendered_have_no_finding(name: str) -> None:
    command = [str(ensure(["helm"])["helm"]), "template", name, str(chart_dir(name)), *CHARTS[name]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    result = judged(of_text(done.stdout), Config())
    assert not result.findings, render(result, "text")
    assert not result.unread, render(result, "text")
