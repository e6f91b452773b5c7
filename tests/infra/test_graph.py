"""The recorded graph of every environment, deployed and as a first preview."""

from collections.abc import Iterator

import pytest

from srvmod.contract import ENGINES_PER_NODE, GPUS_PER_NODE
from srvmod.infra.aws.access import key_of
from srvmod.infra.aws.names import Account
from srvmod.infra.render.recorder import UNKNOWN, Graph, Recorded
from tests.infra.environment import ENVIRONMENTS, graph, settings_of

PROVIDERS = {"aws": "pulumi:providers:aws", "kubernetes": "pulumi:providers:kubernetes"}
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
"""The AWS SDK warns about each of its own deprecated classes when a module is first used."""

both = pytest.mark.parametrize("known", [True, False], ids=["deployed", "preview"])
everywhere = pytest.mark.parametrize("env", ENVIRONMENTS)


def one(graph: Graph, kind: str, name: str | None = None) -> Recorded:
    found = [resource for resource in graph.of_type(kind) if name in (None, resource.name)]
    assert len(found) == 1, f"{kind} {name}: {[resource.urn for resource in found]}"
    return found[0]


def custom(graph: Graph) -> Iterator[Recorded]:
    return (resource for resource in graph.resources.values() if resource.custom)


@both
@everywhere
def test_previews_and_deploys(env: str, known: bool) -> None:
    assert len(graph(env, known=known).resources) > 100


@everywhere
def test_preview_declares_the_same_resources(env: str) -> None:
    """What is declared must not depend on what AWS answers."""
    assert set(graph(env, known=False).resources) == set(graph(env).resources)


@both
@everywhere
def test_every_resource_is_inside_a_component_or_a_root_one(env: str, known: bool) -> None:
    recorded = graph(env, known=known)
    roots = {"pulumi:providers:aws", "kubernetes:core/v1:Namespace", "kubernetes:apps/v1:DaemonSet"}
    for resource in custom(recorded):
        parent = recorded.resources.get(resource.parent)
        inside = parent is not None and parent.type.startswith("srvmod:")
        assert inside or resource.type in roots, resource.urn


@both
@everywhere
def test_no_default_providers(env: str, known: bool) -> None:
    """A default provider would use whatever account or cluster the shell points at."""
    for resource in custom(graph(env, known=known)):
        package = resource.type.partition(":")[0]
        if package in PROVIDERS:
            assert f"{PROVIDERS[package]}::" in resource.provider, f"{resource.urn}: {resource.provider!r}"
            assert "default" not in resource.provider


@everywhere
def test_provider_is_bound_to_the_stacks_account(env: str) -> None:
    provider = one(graph(env), "pulumi:providers:aws")
    assert settings_of(env).aws.account_id in str(provider.inputs["allowedAccountIds"])


@everywhere
def test_cluster_identifier_is_set(env: str) -> None:
    provider = one(graph(env), "pulumi:providers:kubernetes")
    assert provider.inputs["clusterIdentifier"] == settings_of(env).cluster_name


@everywhere
def test_nobody_is_an_admin_for_having_made_the_cluster(env: str) -> None:
    """What the transform does is shown by the simulated account (test_aws_calls) and through the engine."""
    cluster = one(graph(env), "eks:index:Cluster")
    assert len(graph(env).requests[cluster.urn].transforms) == 1


@both
@everywhere
def test_whoever_deploys_may_enter_before_and_after_everything_inside(env: str, known: bool) -> None:
    """Entries, their policies and the ways into the private API are there before the first object, and go after it."""
    recorded = graph(env, known=known)
    reachable = _reachable(recorded, one(recorded, "pulumi:providers:kubernetes"))
    needed = [
        *recorded.of_type("aws:eks/accessPolicyAssociation:AccessPolicyAssociation"),
        *(r for r in recorded.of_type("aws:eks/accessEntry:AccessEntry") if r.inputs["type"] == "STANDARD"),
        *(r for r in recorded.of_type(INGRESS) if r.name.startswith("cluster-api-")),
    ]
    cluster = settings_of(env).cluster
    networks = len(cluster.endpoint_private_access_cidrs)
    assert len(needed) == 2 * len(cluster.admins) + len(cluster.plan_roles) + networks
    assert [r.urn for r in needed if r.urn not in reachable] == []


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
def test_a_runner_in_the_vpc_reaches_the_private_api(env: str) -> None:
    recorded, settings = graph(env), settings_of(env)
    rules = [rule.inputs for rule in recorded.of_type(INGRESS) if rule.name.startswith("cluster-api-")]
    assert [rule["cidrIpv4"] for rule in rules] == [str(settings.network.cidr)]
    for rule in rules:
        assert rule["securityGroupId"] == "<cluster:securityGroupId>"
        assert (rule["ipProtocol"], rule["fromPort"], rule["toPort"]) == ("tcp", 443, 443)


def test_principals_of_one_name_have_resources_of_their_own() -> None:
    account, other = Account("444455556666", "us-east-1"), "arn:aws:iam::777788889999:role/deployer"
    same = [account.role("deployer"), account.role("team-a/deployer"), account.role("team-b/deployer"), other,
            other.replace(":role/", ":user/")]  # fmt: skip
    keys = [key_of(account, arn) for arn in same]
    assert keys[0] == "deployer"
    assert len(set(keys)) == len(same)


@everywhere
def test_system_nodes_can_be_replaced_before_they_go_and_their_number_changed(env: str) -> None:
    group = one(graph(env), "aws:eks/nodeGroup:NodeGroup")
    assert "nodeGroupName" not in group.inputs, "a second group of this name couldn't be made beside the first"
    assert set(group.inputs["scalingConfig"].values()) == {settings_of(env).cluster.system_nodes.count}
    assert list(graph(env).requests[group.urn].ignoreChanges) == []


@both
@everywhere
def test_discovery_tags_are_what_the_node_class_selects(env: str, known: bool) -> None:
    recorded = graph(env, known=known)
    node_class = one(recorded, "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass").inputs["spec"]
    wanted = {"karpenter.sh/discovery": settings_of(env).cluster_name}
    assert node_class["subnetSelectorTerms"] == [{"tags": wanted}]
    assert node_class["securityGroupSelectorTerms"] == [{"tags": wanted}]
    subnets = recorded.of_type("aws:ec2/subnet:Subnet")
    tagged = [subnet for subnet in subnets if wanted.items() <= subnet.inputs["tags"].items()]
    assert {subnet.name for subnet in tagged} == {f"network-private-{zone}" for zone in settings_of(env).network.zones}
    tag = one(recorded, "aws:ec2/tag:Tag", "cluster-discovery").inputs
    assert {tag["key"]: tag["value"]} == wanted


@everywhere
def test_nodes_get_no_public_address(env: str) -> None:
    for subnet in graph(env).of_type("aws:ec2/subnet:Subnet"):
        assert subnet.inputs["mapPublicIpOnLaunch"] is False


@both
@everywhere
def test_plan_reaches_deployment_and_pool(env: str, known: bool) -> None:
    recorded, sizing = graph(env, known=known), settings_of(env).sizing
    deployment = one(recorded, "kubernetes:apps/v1:Deployment").inputs["spec"]
    assert "replicas" not in deployment, "the scaler's: server-side apply would set them back"
    scaler = one(recorded, "kubernetes:keda.sh/v1alpha1:ScaledObject").inputs["spec"]
    assert (scaler["minReplicaCount"], scaler["maxReplicaCount"]) == (sizing.min_engines, sizing.max_engines)
    arguments = deployment["template"]["spec"]["containers"][0]["args"]
    assert f"--max-num-seqs={sizing.max_num_seqs}" in arguments
    assert f"--max-cudagraph-capture-size={sizing.cudagraph_capture_size}" in arguments
    pool = one(recorded, "kubernetes:karpenter.sh/v1:NodePool").inputs["spec"]
    assert pool["limits"] == {"nvidia.com/gpu": str(sizing.max_nodes * int(GPUS_PER_NODE.value))}
    assert recorded.outputs["plan"]["minEngines"] == sizing.min_engines


@everywhere
def test_engines_fill_islands(env: str) -> None:
    pod = one(graph(env), "kubernetes:apps/v1:Deployment").inputs["spec"]["template"]["spec"]
    gpus = int(pod["containers"][0]["resources"]["limits"]["nvidia.com/gpu"])
    assert gpus * int(ENGINES_PER_NODE.value) == int(GPUS_PER_NODE.value)
    assert f"--tensor-parallel-size={gpus}" in pod["containers"][0]["args"]


@everywhere
def test_kubernetes_objects_are_known_in_preview(env: str) -> None:
    """Gates judge a preview: nothing that they look at may wait for AWS.

    No gate looks at the nodes' role, which is the only thing that AWS is asked about first.
    """
    node_classes = 0
    for resource in custom(graph(env, known=False)):
        if resource.type.startswith("kubernetes:"):
            inputs = dict(resource.inputs)
            if resource.type.endswith(":EC2NodeClass"):
                inputs["spec"] = {key: value for key, value in inputs["spec"].items() if key != "role"}
                node_classes += 1
            assert UNKNOWN not in str(inputs), resource.urn
    assert node_classes == 1


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
def test_weight_cache_comes_from_the_stacks_own_repository(env: str) -> None:
    repository = one(graph(env), "aws:ecr/repository:Repository").inputs["name"]
    cache = one(graph(env), "kubernetes:apps/v1:DaemonSet", "weight-cache").inputs["spec"]["template"]["spec"]
    image = cache["containers"][0]["image"]
    account, region = settings_of(env).aws.account_id, settings_of(env).aws.region
    assert image.startswith(f"{account}.dkr.ecr.{region}.amazonaws.com/{repository}:")


@everywhere
def test_the_cache_reads_the_bucket_that_exists_as_who_may(env: str) -> None:
    recorded = graph(env)
    bucket = one(recorded, "aws:s3/bucket:Bucket", "weights").inputs["bucket"]
    cache = one(recorded, "kubernetes:apps/v1:DaemonSet", "weight-cache").inputs["spec"]["template"]["spec"]
    variables = {entry["name"]: entry.get("value") for entry in cache["containers"][0]["env"]}
    assert variables["BUCKET"] == bucket == recorded.outputs["weights"]["bucket"]
    identity = one(recorded, "aws:eks/podIdentityAssociation:PodIdentityAssociation", "weights-reader").inputs
    assert (identity["namespace"], identity["serviceAccount"]) == ("serving", cache["serviceAccountName"])


@everywhere
def test_api_keys_are_masked(env: str) -> None:
    secret = one(graph(env), "kubernetes:core/v1:Secret").inputs
    assert "stringData" not in secret, "what is taken out of it stays in the cluster"
    assert set(secret["data"]) == set(settings_of(env).gateway.api_clients)
    assert set(secret["data"].values()) == {"[secret]"}


@everywhere
def test_pool_waits_for_roles_and_is_removed_before_them(env: str) -> None:
    """Karpenter terminates the pool's nodes with its own role: destroying goes in the opposite order."""
    node_class = one(graph(env), "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass")
    needed = {"node-identity-karpenter", "node-identity-node", "node-identity-interruption"}
    names = {urn.rpartition("::")[2] for urn in _reachable(graph(env), node_class)}
    assert needed <= names


@everywhere
def test_namespaced_objects_wait_for_their_namespace(env: str) -> None:
    recorded = graph(env)
    namespace = one(recorded, "kubernetes:core/v1:Namespace", "serving").urn
    for resource in custom(recorded):
        if resource.inputs.get("metadata", {}).get("namespace") == "serving":
            assert namespace in _reachable(recorded, resource), resource.urn


def _reachable(recorded: Graph, resource: Recorded) -> set[str]:
    """What a resource waits for; children wait for their component, which waits for what it depends on."""
    seen: set[str] = set()
    queue = [resource]
    while queue:
        current = queue.pop()
        for urn in (*current.dependencies, current.parent):
            if urn not in seen and urn in recorded.resources:
                seen.add(urn)
                queue.append(recorded.resources[urn])
    return seen


def test_pool_differs_between_environments_in_ids_only() -> None:
    """Karpenter provisions locally from the very objects that every environment declares."""

    def spec(env: str) -> dict[str, object]:
        found = dict(one(graph(env), "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass").inputs["spec"])
        for key in ("role", "subnetSelectorTerms", "securityGroupSelectorTerms", "tags"):
            found.pop(key)
        return found

    assert spec("local") == spec("dev") == spec("staging") == spec("prod")


def test_local_has_no_device_plugin_and_no_charts() -> None:
    local = graph("local")
    assert [resource.name for resource in local.of_type("kubernetes:apps/v1:DaemonSet")] == ["weight-cache"]
    assert local.of_type("kubernetes:helm.sh/v3:Release") == []


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
def test_real_environments_have_no_trace_of_the_simulation(env: str) -> None:
    # Admission policies forbid simulations there, so they have to name them.
    resources = [one for one in graph(env).resources.values() if "ValidatingAdmissionPolicy" not in one.type]
    text = str([dict(resource.inputs) for resource in resources])
    assert "simulated" not in text
    assert "AWS_ENDPOINT_URL" not in text
