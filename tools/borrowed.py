"""Other people's files that lie in the modules of our tools: charts, CRDs, kwok's stages. Read, never committed."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path

from srvmod.tools import paths
from srvmod.tools.errors import ToolError
from srvmod.tools.gomod import gomod_dir, home_of, version_of

KARPENTER = "github.com/aws/karpenter-provider-aws"
ENVOY_GATEWAY = "github.com/envoyproxy/gateway"
KWOK = "sigs.k8s.io/kwok"
KEDA = "github.com/kedacore/keda/v2"
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator"
# name of the chart → module, folder in it
_CHARTS = {
    "karpenter": (KARPENTER, "charts/karpenter"),
    "karpenter-crd": (KARPENTER, "charts/karpenter-crd"),
    "gateway-helm": (ENVOY_GATEWAY, "charts/gateway-helm"),
}


def chart_dir(name: str) -> Path:
    """A folder that `helm template` takes, of chart "karpenter", "karpenter-crd" or "gateway-helm".

    The first two are used where they lie in the module cache. gateway-helm only becomes a chart when it is released:
    its values are a template and its version "latest"; a copy with both filled in is made under .tools/charts.
    """
    if name not in _CHARTS:
        raise ToolError(f"no chart {name!r} lies in a module of our tools", f"allowed: {', '.join(sorted(_CHARTS))}")
    module, folder = _CHARTS[name]
    source = gomod_dir(module) / folder
    if not (source / "Chart.yaml").is_file():
        raise ToolError(f"chart {name}: expected {source}/Chart.yaml; it isn't there", _moved(module))
    if not (source / "values.tmpl.yaml").is_file():
        return source
    return _filled(name, source, version_of(home_of(module) / "go.mod", module))


def _filled(name: str, source: Path, version: str) -> Path:
    target = paths.CHARTS / f"{name}-{version}"
    if target.is_dir():
        return target
    paths.CHARTS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}-", dir=paths.CHARTS) as scratch:
        copy = Path(scratch) / name
        # Files of the module cache are read-only; the copy gets ordinary modes.
        shutil.copytree(source, copy, copy_function=shutil.copyfile)
        for folder in (copy, *(path for path in copy.rglob("*") if path.is_dir())):
            folder.chmod(0o755)
        values = (copy / "values.tmpl.yaml").read_text()
        known = {"GatewayImage": f"docker.io/envoyproxy/gateway:{version}", "GatewayImagePullPolicy": "IfNotPresent"}
        left = set(re.findall(r"\$\{(\w+)\}", values)) - set(known)
        if left:
            raise ToolError(
                f"chart {name} {version}: its values ask for {', '.join(sorted(left))}, which is unknown here",
                "add it to `known` in tools/borrowed.py",
            )
        (copy / "values.yaml").write_text(re.sub(r"\$\{(\w+)\}", lambda found: known[found[1]], values))
        (copy / "values.tmpl.yaml").unlink()
        chart = (copy / "Chart.yaml").read_text()
        chart = re.sub(r"^version: .*$", f"version: {version}", chart, flags=re.MULTILINE)
        chart = re.sub(r"^appVersion: .*$", f'appVersion: "{version}"', chart, flags=re.MULTILINE)
        (copy / "Chart.yaml").write_text(chart)
        try:
            copy.rename(target)
        except OSError:
            # Another process was first; a folder that isn't there either is a real fault.
            if not target.is_dir():
                raise
    return target


def karpenter_crds() -> tuple[Path, ...]:
    """CRDs of Karpenter (EC2NodeClass, NodePool, NodeClaim, …), one file each, sorted."""
    return _yaml_files(KARPENTER, "pkg/apis/crds")


def gateway_api_crds() -> tuple[Path, ...]:
    """CRDs of the Gateway API in the version and channel that Envoy Gateway releases with."""
    return _yaml_files(ENVOY_GATEWAY, "charts/gateway-helm/charts/crds/crds")


def envoy_gateway_crds() -> tuple[Path, ...]:
    """CRDs of Envoy Gateway itself (EnvoyProxy, ClientTrafficPolicy, SecurityPolicy, …), one file each, sorted."""
    return _yaml_files(ENVOY_GATEWAY, "charts/gateway-helm/charts/crds/crds/generated")


def keda_crds() -> tuple[Path, ...]:
    """KEDA's CRDs that the program has objects of: ScaledObject and TriggerAuthentication."""
    kinds = ("scaledobjects", "triggerauthentications")
    return _named(KEDA, "config/crd/bases", tuple(f"keda.sh_{kind}.yaml" for kind in kinds))


def prometheus_crds(kinds: tuple[str, ...] = ("podmonitors", "prometheusrules")) -> tuple[Path, ...]:
    """The Prometheus operator's CRDs of these kinds. Left out by default are those that a local stack has no object
    of: AlertmanagerConfig alone is 0.8 MB, which costs the API server a second."""
    return _named(
        PROMETHEUS_OPERATOR,
        "example/prometheus-operator-crd",
        tuple(f"monitoring.coreos.com_{kind}.yaml" for kind in kinds),
    )


def crd_paths() -> tuple[Path, ...]:
    """All CRDs that the platform's objects need, in the order in which to apply them."""
    return karpenter_crds() + gateway_api_crds() + envoy_gateway_crds() + keda_crds() + prometheus_crds()


def kwok_stages() -> tuple[Path, ...]:
    """kwok's stage files that make nodes ready, keep their leases and run pods at once (its "fast" selection)."""
    folders = ("node/fast", "node/heartbeat-with-lease", "pod/fast")
    return tuple(path for folder in folders for path in _yaml_files(KWOK, f"kustomize/stage/{folder}"))


def _yaml_files(module: str, folder: str) -> tuple[Path, ...]:
    where = gomod_dir(module) / folder
    files = tuple(path for path in sorted(where.glob("*.yaml")) if path.name != "kustomization.yaml")
    if not files:
        raise ToolError(f"expected YAML files in {where}; found none", _moved(module))
    return files


def _named(module: str, folder: str, names: tuple[str, ...]) -> tuple[Path, ...]:
    where = gomod_dir(module) / folder
    missing = [name for name in names if not (where / name).is_file()]
    if missing:
        raise ToolError(f"expected {', '.join(missing)} in {where}; not there", _moved(module))
    return tuple(where / name for name in names)


def _moved(module: str) -> str:
    return f"the layout of {module} has changed with its version: correct the folder in tools/borrowed.py"
