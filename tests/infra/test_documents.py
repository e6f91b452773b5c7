"""Documents as pure functions: IAM, pool, engine, routes."""

from ipaddress import IPv4Network
from typing import Any

import pytest
import yaml

from srvmod.contract import ITL_P95_MS, P5_48XLARGE, SCALE_OUT_ITL_MS, TTFT_MS, EngineKind
from srvmod.infra.aws.documents import interruption, karpenter, load_balancer, trust, weights
from srvmod.infra.aws.documents.flow_logs import writer_policy
from srvmod.infra.aws.documents.keys import key_policy
from srvmod.infra.aws.documents.statements import Document
from srvmod.infra.aws.names import Account, Names, discovery_tags
from srvmod.infra.aws.subnets import split
from srvmod.infra.platform.documents import gateway, pool
from srvmod.infra.serving.documents import engine, engine_flags, route, weight_cache

ACCOUNT = Account("111122223333", "us-east-1")
FLAGS = engine_flags.EngineFlags(
    model_path="/models/r1",
    served_name="llama",
    port=8000,
    tensor_parallel_size=4,
    block_size=16,
    kv_cache_dtype="fp8",
    max_model_len=8192,
    max_num_seqs=144,
    max_num_batched_tokens=2048,
    max_cudagraph_capture_size=144,
    gpu_memory_utilization=0.92,
    shutdown_timeout_seconds=60,
    extra=("--seed=1",),
)
ENGINE = engine.Engine("serving", "p5-tp4", EngineKind.VLLM, "r/i:1", "IfNotPresent", 4, 8, "r1", FLAGS)
POOL = pool.Pool(
    name="p5-tp4",
    nodes=4,
    node_role="c-node",
    discovery=discovery_tags("c"),
    ami_alias="al2023@v20260714",
    capacity_types=["reserved", "on-demand"],
    reservations=[pool.Reservation(id="cr-1"), pool.Reservation(tags={"purpose": "llm"})],
)

CONTROLLER = karpenter.controller_policies(ACCOUNT, "c", "c-node", "c-interruption")
BALANCER = load_balancer.controller_policies(ACCOUNT, "c")
IAM: dict[str, Document] = {
    **CONTROLLER,
    **{f"load-balancer-{name}": document for name, document in BALANCER.items()},
    "reader": weights.reader_policy(ACCOUNT, "b", "models", "arn:key"),
    "flow-logs": writer_policy(ACCOUNT, "/aws/vpc/c"),
}


@pytest.mark.parametrize("name", IAM)
def test_statement_ids_are_unique_letters(name: str) -> None:
    sids = [statement["Sid"] for statement in IAM[name]["Statement"]]
    assert len(set(sids)) == len(sids)
    assert all(sid.isalnum() for sid in sids)


def test_karpenter_has_its_six_policies_within_iams_limit() -> None:
    assert len(CONTROLLER) == 6
    for document in CONTROLLER.values():
        assert len(str(document)) < 6144


def test_writes_to_ec2_are_tied_to_the_clusters_tags() -> None:
    for statement in CONTROLLER["node-lifecycle"]["Statement"]:
        if statement["Sid"] == "UseExistingResources":
            continue
        assert "kubernetes.io/cluster/c" in str(statement["Condition"]), statement["Sid"]


def test_load_balancer_writes_are_tied_to_the_cluster() -> None:
    for name in ("security-groups", "load-balancers"):
        for statement in BALANCER[name]["Statement"]:
            if statement["Sid"] not in {"CreateInVpc", "FirstLoadBalancerOfTheAccount"}:
                assert "'c'" in str(statement["Condition"]) or "cluster/c" in str(statement["Condition"])


def test_node_role_is_passed_to_ec2_only() -> None:
    statement = CONTROLLER["iam-integration"]["Statement"][0]
    assert statement["Resource"] == ["arn:aws:iam::111122223333:role/c-node"]
    assert statement["Condition"] == {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com"]}}


@pytest.mark.parametrize(
    "document", [interruption.queue_policy(ACCOUNT, "q"), weights.bucket_policy(ACCOUNT, "b")], ids=["queue", "bucket"]
)
def test_resource_policies_refuse_plain_text(document: Document) -> None:
    deny = [statement for statement in document["Statement"] if statement["Effect"] == "Deny"]
    assert deny[0]["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    assert deny[0]["Principal"] == "*"


def test_queue_takes_events_of_this_account_only() -> None:
    allow = interruption.queue_policy(ACCOUNT, "q")["Statement"][0]
    assert allow["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}
    assert len(interruption.EVENTS) == 5


def test_key_stays_manageable() -> None:
    assert key_policy(ACCOUNT)["Statement"][0]["Principal"] == {"AWS": "arn:aws:iam::111122223333:root"}


def test_pods_assume_roles_with_session_tags() -> None:
    assert trust.pod_identity()["Statement"][0]["Action"] == ["sts:AssumeRole", "sts:TagSession"]


def test_names_and_tags_come_from_one_place() -> None:
    names = Names("c", "prod", {"owner": "ml"})
    assert names.tags("vpc", {"x": "y"}) == {
        "Name": "c-vpc",
        "srvmod.dev/environment": "prod",
        "owner": "ml",
        "x": "y",
    }
    assert names.discovery_tags() == discovery_tags("c") == {"karpenter.sh/discovery": "c"}


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "10.1.0.0/20", "172.16.0.0/18"])
def test_subnets_lie_in_the_vpc_and_apart(cidr: str) -> None:
    network = IPv4Network(cidr)
    zones = split(network, ["a", "b", "c"])
    subnets = [IPv4Network(text) for zone in zones for text in (zone.private_cidr, zone.public_cidr)]
    assert all(subnet.subnet_of(network) for subnet in subnets)
    assert not any(a.overlaps(b) for i, a in enumerate(subnets) for b in subnets[i + 1 :])


def test_four_zones_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 3"):
        split(IPv4Network("10.0.0.0/16"), ["a", "b", "c", "d"])


def test_pool_is_never_moved_while_it_serves() -> None:
    spec = pool.node_pool(POOL)["spec"]
    assert spec["disruption"]["consolidationPolicy"] == "WhenEmpty"
    assert {"nodes": "0", "reasons": ["Underutilized", "Drifted"]} in spec["disruption"]["budgets"]
    template = spec["template"]["spec"]
    assert template["expireAfter"] == "Never"
    assert [taint["key"] for taint in template["taints"]] == ["srvmod.dev/tp4"]
    assert template["startupTaints"] == [{"key": "srvmod.dev/weights-cold", "value": "true", "effect": "NoSchedule"}]
    assert spec["limits"] == {"nvidia.com/gpu": "32"}
    kinds = {rule["key"]: rule["values"] for rule in template["requirements"]}
    assert kinds["node.kubernetes.io/instance-type"] == ["p5.48xlarge"]
    assert kinds["karpenter.sh/capacity-type"] == ["reserved", "on-demand"]


def test_node_class_pins_one_ami_term_and_reservations() -> None:
    spec = pool.node_class(POOL)["spec"]
    assert spec["amiSelectorTerms"] == [{"alias": "al2023@v20260714"}]
    assert spec["capacityReservationSelectorTerms"] == [{"id": "cr-1"}, {"tags": {"purpose": "llm"}}]
    assert spec["instanceStorePolicy"] == "RAID0"
    assert spec["metadataOptions"]["httpTokens"] == "required"


def test_user_data_is_a_node_config_with_topology() -> None:
    config = yaml.safe_load(pool.user_data())
    assert config["kind"] == "NodeConfig"
    kubelet = config["spec"]["kubelet"]["config"]
    assert kubelet["topologyManagerPolicy"] == "single-numa-node"
    assert kubelet["topologyManagerScope"] == "pod"
    assert kubelet["cpuManagerPolicy"] == "static"
    assert "reservedSystemCPUs" not in kubelet


def test_flags_say_everything_that_matters() -> None:
    words = engine_flags.serve_arguments(FLAGS)
    assert words[:2] == ["serve", "/models/r1"]
    assert words[-1] == "--seed=1"
    for flag in (
        "--tensor-parallel-size=4",
        "--block-size=16",
        "--kv-cache-dtype=fp8",
        "--max-num-seqs=144",
        "--max-cudagraph-capture-size=144",
        "--enable-chunked-prefill",
        "--enable-prefix-caching",
        "--stream-interval=1",
        "--shutdown-timeout=60",
    ):
        assert flag in words


def test_histograms_have_the_edges_of_the_targets() -> None:
    assert ITL_P95_MS.value / 1e3 in engine_flags.ITL_BUCKETS_SECONDS
    assert SCALE_OUT_ITL_MS.value / 1e3 in engine_flags.ITL_BUCKETS_SECONDS
    assert TTFT_MS.value / 1e3 in engine_flags.TTFT_BUCKETS_SECONDS
    for buckets in (
        engine_flags.ITL_BUCKETS_SECONDS,
        engine_flags.TTFT_BUCKETS_SECONDS,
        engine_flags.REQUEST_BUCKETS_SECONDS,
    ):
        assert list(buckets) == sorted(set(buckets))


def _containers() -> list[dict[str, Any]]:
    pod = engine.pod(ENGINE)
    return [*pod["initContainers"], *pod["containers"]]


def test_pod_is_guaranteed_with_whole_cpus() -> None:
    for container in _containers():
        assert container["resources"]["requests"] == container["resources"]["limits"]
        assert int(container["resources"]["limits"]["cpu"]) >= 1
    server = engine.pod(ENGINE)["containers"][0]
    assert server["resources"]["limits"] == {"cpu": "88", "memory": "900Gi", "nvidia.com/gpu": "4"}


def test_every_container_of_the_engine_takes_whole_cores() -> None:
    """The pool's kubelets have full-pcpus-only: one odd number of CPUs, and they refuse the pod (SMTAlignmentError)."""
    assert pool.node_config()["spec"]["kubelet"]["config"]["cpuManagerPolicyOptions"] == {"full-pcpus-only": "true"}
    cpus = {one["name"]: int(one["resources"]["limits"]["cpu"]) for one in _containers()}
    assert cpus == {"weights-ready": 2, "engine": 88}
    assert not [name for name, count in cpus.items() if count % P5_48XLARGE.threads_per_core]


def test_grace_outlasts_drain() -> None:
    pod = engine.pod(ENGINE)
    server = pod["containers"][0]
    sleep = server["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod["terminationGracePeriodSeconds"] > sleep + FLAGS.shutdown_timeout_seconds


def test_pod_waits_for_verified_weights_and_shares_memory() -> None:
    pod = engine.pod(ENGINE)
    assert pod["initContainers"][0]["args"][0] == "/models/r1/READY"
    assert pod["enableServiceLinks"] is False
    shm = next(volume for volume in pod["volumes"] if volume["name"] == "shm")
    assert shm["emptyDir"]["medium"] == "Memory"
    models = next(volume for volume in pod["volumes"] if volume["name"] == "models")
    assert models == weight_cache.models_volume()


def test_simulated_engine_differs_in_its_program_only() -> None:
    simulated = engine.Engine("serving", "p5-tp4", EngineKind.SIMULATED, "r/i:1", "IfNotPresent", 4, 8, "r1", FLAGS)
    real, other = engine.pod(ENGINE), engine.pod(simulated)
    program = ["/usr/bin/env", "python3", "-m", "srvmod_engine"]
    check = real["containers"][0].pop("command")[:-1]
    assert other["containers"][0].pop("command") == [*check, *program]
    assert real == other


def test_rollout_needs_no_spare_island() -> None:
    assert engine.deployment(ENGINE)["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}


def test_streams_have_no_deadline_but_an_end() -> None:
    spec = route.Route("serving", "inference", "i.example.com", "600s", "5m", 1000)
    assert route.http_route(spec)["spec"]["rules"][0]["timeouts"] == {"request": "0s"}
    traffic = route.backend_traffic_policy(spec)["spec"]
    assert traffic["timeout"]["http"]["requestTimeout"] == "0s"
    assert traffic["timeout"]["http"]["maxStreamDuration"] == "600s"
    assert traffic["timeout"]["http"]["streamIdleTimeout"] == "5m"
    assert traffic["loadBalancer"]["type"] == "LeastRequest"
    triggers = set(traffic["retry"]["retryOn"]["triggers"])
    assert not triggers & {"5xx", "reset", "gateway-error"}
    assert "timeout" not in traffic["retry"]["perRetry"]


def test_route_without_hostname_answers_to_any() -> None:
    spec = route.Route("serving", "inference", None, "600s", "5m", 1000)
    assert "hostnames" not in route.http_route(spec)["spec"]


def test_keys_are_taken_from_the_bearer_header_and_not_passed_on() -> None:
    auth = route.security_policy("serving")["spec"]["apiKeyAuth"]
    assert auth["extractFrom"] == [{"headers": ["authorization"]}]
    assert auth["sanitize"] is True


def test_gateway_speaks_tls_with_a_secret() -> None:
    base = gateway.Gateway("serving", 2, "e:1", "LoadBalancer", tls_secret="cert", port=443)
    listener = gateway.gateway(base)["spec"]["listeners"][0]
    assert listener["protocol"] == "HTTPS"
    assert listener["tls"]["certificateRefs"] == [{"kind": "Secret", "name": "cert"}]
    assert gateway.client_traffic_policy(base)["spec"]["tls"]["minVersion"] == "1.2"


def test_load_balancer_ends_tls_with_a_certificate() -> None:
    annotations = gateway.nlb_annotations(internal=False, certificate="arn:aws:acm:x", drain_seconds=660)
    text = str(annotations)
    assert "HTTP2Preferred" in text
    assert "internet-facing" in text
    assert "tcp.idle_timeout" not in text


def test_draining_envoys_keep_their_streams_at_the_load_balancer() -> None:
    text = str(gateway.nlb_annotations(internal=True, certificate=None, drain_seconds=660))
    assert "target_health_state.unhealthy.connection_termination.enabled=false" in text
    assert "tcp.idle_timeout.seconds=3600" in text
    assert "target_health_state.unhealthy.draining_interval_seconds=660" in text
