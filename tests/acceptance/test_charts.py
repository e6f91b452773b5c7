"""Charts by the real helm: it takes our values, each of them has an effect, and what comes out is what we mean."""

import copy
import json
from typing import Any

import pytest
import yaml

from srvmod.infra import versions
from srvmod.infra.labels import NODES_LABEL, SYSTEM_NODES
from tests.infra.chart_rendering import CHARTS, MIRROR, MIRRORED, OWN, Helm, leaves, rendered, template
from tests.infra.environment import graph, settings_of

pytestmark = pytest.mark.acceptance


def changed(values: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """The values with another one in one place."""
    new = copy.deepcopy(values)
    place = new
    for key in path[:-1]:
        place = place[key]
    old = place[path[-1]]
    place[path[-1]] = not old if isinstance(old, bool) else old + 1 if isinstance(old, int) else f"{old}x"
    return new


@pytest.mark.parametrize("name", OWN)
def test_every_value_has_an_effect(name: str) -> None:
    """A key that a chart lists but no longer reads is as lost as one that it never had."""
    base = template(name, MIRRORED[name], crds=False)
    assert base.problem == ""
    dead = [
        ".".join(path)
        for path, _ in leaves(MIRRORED[name])
        if template(name, changed(MIRRORED[name], path), crds=False) == base
    ]
    assert dead == []


@pytest.mark.parametrize("name", CHARTS)
def test_helm_templates_the_chart(name: str) -> None:
    found = rendered("prod", name)
    assert found.problem == ""
    assert found.objects
    assert all(len(json.dumps(item)) < 1_000_000 for item in found.objects), "etcd takes no larger object"


def test_a_chart_that_refuses_its_values_is_noticed() -> None:
    refused = template(versions.KARPENTER.name, {"settings": "none"})
    assert refused.problem
    assert refused.objects == ()


def deployment(found: Helm, name: str) -> dict[str, Any]:
    return next(item for item in found.of_kind("Deployment") if item["metadata"]["name"] == name)


def test_karpenter_is_told_of_cluster_queue_and_gates() -> None:
    found = rendered("prod", versions.KARPENTER.name)
    pod = deployment(found, "karpenter")["spec"]["template"]["spec"]
    variables = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
    assert variables["CLUSTER_NAME"] == settings_of("prod").cluster_name
    (queue,) = graph("prod").of_type("aws:sqs/queue:Queue")
    assert variables["INTERRUPTION_QUEUE"] == queue.inputs["name"]
    gates = dict(gate.split("=") for gate in str(variables["FEATURE_GATES"]).split(","))
    assert (gates["ReservedCapacity"], gates["NodeRepair"]) == ("true", "false")
    accounts = [association.inputs for association in graph("prod").of_type(
        "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    )]  # fmt: skip
    assert pod["serviceAccountName"] in {
        account["serviceAccount"] for account in accounts if account["namespace"] == "kube-system"
    }


@pytest.mark.parametrize("name", OWN)
def test_controllers_run_twice_on_system_nodes(name: str) -> None:
    for item in rendered("prod", name).of_kind("Deployment"):
        assert item["spec"]["replicas"] == 2
        assert item["spec"]["template"]["spec"]["nodeSelector"][NODES_LABEL] == SYSTEM_NODES
    assert rendered("prod", name).of_kind("PodDisruptionBudget")


def images(found: Helm) -> set[str]:
    """Images of all pods, and of those that Envoy Gateway starts later."""
    pods = [item["spec"]["template"]["spec"] for item in found.of_kind("Deployment") + found.of_kind("Job")]
    names = {container["image"] for pod in pods for container in pod["containers"] + pod.get("initContainers", [])}
    for item in found.of_kind("ConfigMap"):
        for text in item["data"].values():
            helper = yaml.safe_load(text).get("provider", {}).get("kubernetes", {}).get("shutdownManager", {})
            names |= {helper["image"]} if helper else set()
    return names


@pytest.mark.parametrize("name", OWN)
def test_controllers_images_are_pinned_by_digest(name: str) -> None:
    assert images(rendered("prod", name))
    assert all("@sha256:" in image for image in images(rendered("prod", name)))


def test_controllers_run_the_images_that_srvmod_images_lists() -> None:
    """Karpenter's chart is published with the tag and digest of its release, which its module hasn't got yet."""
    assert images(rendered("prod", versions.ENVOY_GATEWAY.name)) == {versions.ENVOY_GATEWAY_IMAGE.reference}
    (karpenter,) = images(rendered("prod", versions.KARPENTER.name))
    assert karpenter.partition(":")[0] == versions.KARPENTER_IMAGE.repository


@pytest.mark.parametrize("name", OWN)
def test_a_mirror_serves_every_image(name: str) -> None:
    assert {image.startswith(f"{MIRROR}/") for image in images(template(name, MIRRORED[name], crds=False))} == {True}
