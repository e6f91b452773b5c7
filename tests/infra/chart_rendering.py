"""Charts that lie in a Go module, templated by the real helm with the values that the program gives them."""

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import yaml

from srvmod.infra import versions
from srvmod.infra.labels import ENVOY_GATEWAY_NAMESPACE, KARPENTER_NAMESPACE
from srvmod.infra.platform.documents import charts
from srvmod.infra.versions import Chart
from srvmod.tools import chart_dir, ensure
from tests.infra.environment import graph

RELEASE = "kubernetes:helm.sh/v3:Release"
NAMESPACES = {
    versions.KARPENTER.name: KARPENTER_NAMESPACE,
    versions.KARPENTER_CRDS.name: KARPENTER_NAMESPACE,
    versions.ENVOY_GATEWAY.name: ENVOY_GATEWAY_NAMESPACE,
}
CHARTS: dict[str, Chart] = {
    chart.name: chart for chart in (versions.KARPENTER_CRDS, versions.KARPENTER, versions.ENVOY_GATEWAY)
}
"""The charts whose files can be had here, by name."""
OWN = (versions.KARPENTER.name, versions.ENVOY_GATEWAY.name)
"""Charts that get values of ours."""
MIRROR = "mirror.example/path"
MIRRORED = {
    versions.KARPENTER.name: charts.karpenter("c", "q", "karpenter", isolated=True, wait_seconds=120, registry=MIRROR),
    versions.ENVOY_GATEWAY.name: charts.envoy_gateway(f"{MIRROR}/envoyproxy/gateway:v1@sha256:{'0' * 64}"),
}


@dataclass(frozen=True)
class Helm:
    """What helm said: a problem, or the objects as one text."""

    problem: str
    text: str = ""

    @cached_property
    def objects(self) -> tuple[dict[str, Any], ...]:
        """The objects, parsed."""
        return tuple(found for found in yaml.load_all(self.text, yaml.CSafeLoader) if found)

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """The objects of a kind, in helm's order."""
        return [found for found in self.objects if found["kind"] == kind]


def values_of(env: str, chart: str) -> dict[str, Any]:
    """The values that an environment's program gives to a chart."""
    (release,) = [found for found in graph(env).of_type(RELEASE) if found.inputs["name"] == chart]
    return dict(release.inputs.get("values") or {})


def template(chart: str, values: dict[str, Any], *, crds: bool = True, namespace: str = "") -> Helm:
    """`helm template` of a chart, as a cluster of our version would get it; in its own namespace or another."""
    command = [
        str(ensure(["helm"])["helm"]), "template", chart, str(chart_dir(chart)),
        "--namespace", namespace or NAMESPACES[chart],
        f"--kube-version={versions.KUBERNETES}", "--values=-", *(["--include-crds"] if crds else []),
    ]  # fmt: skip
    result = subprocess.run(
        command, input=yaml.safe_dump(values), capture_output=True, text=True, timeout=120, check=False
    )
    if result.returncode:
        return Helm(result.stderr)
    return Helm("", result.stdout)


@cache
def rendered(env: str, chart: str) -> Helm:
    """A chart with an environment's values, once per test session."""
    return template(chart, values_of(env, chart))


def leaves(values: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(values, dict):
        for key, value in values.items():
            yield from leaves(value, (*path, key))
    else:
        yield path, values
