"""The pinned tools: found on PATH or built once, and the charts and CRDs that lie in their modules."""

from srvmod.tools.borrowed import (
    chart_dir,
    crd_paths,
    envoy_gateway_crds,
    gateway_api_crds,
    karpenter_crds,
    keda_crds,
    kwok_stages,
    prometheus_crds,
)
from srvmod.tools.builder import ensure, find
from srvmod.tools.catalogue import LOCAL_STACK
from srvmod.tools.errors import ToolError
from srvmod.tools.gomod import gomod_dir
from srvmod.tools.paths import BIN, CNI_BIN
from srvmod.tools.wheels import envoy, kubectl

__all__ = [
    "BIN",
    "CNI_BIN",
    "LOCAL_STACK",
    "ToolError",
    "chart_dir",
    "crd_paths",
    "ensure",
    "envoy",
    "envoy_gateway_crds",
    "find",
    "gateway_api_crds",
    "gomod_dir",
    "karpenter_crds",
    "keda_crds",
    "kubectl",
    "kwok_stages",
    "prometheus_crds",
]
