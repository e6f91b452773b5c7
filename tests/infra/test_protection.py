"""What a change must not take away is protected where the cluster is, and destroying has an order."""

import pytest

from srvmod.infra.labels import ENVOY_GATEWAY_NAMESPACE
from srvmod.infra.render.recorder import Graph
from tests.infra.environment import graph, settings_of
from tests.infra.test_graph import one

PROTECTED = {
    "aws:ec2/vpc:Vpc": 1,
    "aws:ec2/subnet:Subnet": 3,
    "aws:s3/bucket:Bucket": 1,
    "eks:index:Cluster": 1,
}


@pytest.mark.parametrize("env", ["dev", "prod"])
def test_protected_where_the_cluster_is(env: str) -> None:
    expected = PROTECTED if settings_of(env).cluster.deletion_protection else {}
    found: dict[str, int] = {}
    for resource in graph(env).resources.values():
        if resource.protect and resource.type in PROTECTED:
            found[resource.type] = found.get(resource.type, 0) + 1
    assert found == expected


@pytest.mark.parametrize("env", ["dev", "prod"])
def test_access_logs_hold_no_destruction_up_that_was_decided(env: str) -> None:
    """Their bucket is never empty; S3 deletes only empty ones. Weights are never deleted with their bucket."""
    kept = {bucket.name: not bucket.inputs.get("forceDestroy") for bucket in graph(env).of_type("aws:s3/bucket:Bucket")}
    assert kept == {"weights": True, "weights-logs": settings_of(env).cluster.deletion_protection}


def test_a_rotated_key_is_never_a_moment_without_keys() -> None:
    """Unless told otherwise the Kubernetes provider replaces a Secret whose data change."""
    provider = one(graph("prod"), "pulumi:providers:kubernetes").inputs
    assert str(provider["enableSecretMutable"]).lower() == "true"
    assert str(provider["enableConfigMapMutable"]).lower() == "true"


def _waits_for(graph: Graph, urn: str, other: str) -> bool:
    """Whether a resource is made after another (and so destroyed before it), by any way through the graph: the engine
    follows dependencies, provider and parent, and a component carries the dependencies of its own options."""
    seen, todo = set[str](), [urn]
    while todo:
        current = todo.pop()
        if current == other:
            return True
        if current in seen or current not in graph.resources:
            continue
        seen.add(current)
        resource = graph.resources[current]
        todo += [*resource.dependencies, resource.parent, resource.provider.rpartition("::")[0]]
    return False


def test_the_load_balancer_goes_while_its_controller_is_there() -> None:
    """The namespace holds the Service with the load balancer's finalizer: deleting it waits for that."""
    prod = graph("prod")
    names = [
        resource
        for resource in prod.of_type("kubernetes:core/v1:Namespace")
        if resource.inputs["metadata"]["name"] == ENVOY_GATEWAY_NAMESPACE
    ]
    assert len(names) == 1
    release = "kubernetes:helm.sh/v3:Release"
    controller = one(prod, release, "load-balancer-controller-aws-load-balancer-controller")
    envoy_gateway = one(prod, release, "envoy-gateway-gateway-helm")
    gateway = one(prod, "kubernetes:gateway.networking.k8s.io/v1:Gateway")
    assert _waits_for(prod, gateway.urn, envoy_gateway.urn)
    assert _waits_for(prod, envoy_gateway.urn, names[0].urn)
    assert _waits_for(prod, names[0].urn, controller.urn)
    assert "createNamespace" not in envoy_gateway.inputs or not envoy_gateway.inputs["createNamespace"]


def test_nodes_go_before_the_cluster_and_its_network() -> None:
    prod = graph("prod")
    pool = one(prod, "kubernetes:karpenter.sh/v1:NodePool")
    node_class = one(prod, "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass")
    karpenter = one(prod, "kubernetes:helm.sh/v3:Release", "karpenter-karpenter")
    cluster = one(prod, "eks:index:Cluster")
    assert _waits_for(prod, pool.urn, node_class.urn)
    assert _waits_for(prod, node_class.urn, karpenter.urn)
    assert _waits_for(prod, karpenter.urn, cluster.urn)
    for subnet in prod.of_type("aws:ec2/subnet:Subnet"):
        if "private" in subnet.name:
            assert _waits_for(prod, cluster.urn, subnet.urn)
