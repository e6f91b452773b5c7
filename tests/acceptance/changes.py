"""A change of every setting: what it becomes, what it may replace, and which settings can't change at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from srvmod.infra.settings.base import Section
from srvmod.infra.settings.settings import Settings

Sections = dict[str, Any]
CONTROLLERS = ("karpenter", "envoyGateway", "keda", "loadBalancerController", "prometheusStack")
PROMETHEUS = "http://prometheus.monitoring.svc:9090"
"""The one that there is where `charts.prometheusStack` is existing."""
ACCESS_POLICY = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"


def deployed_form(sections: Sections) -> None:
    """What is deployed before the changes: dev with controllers of its own, as protected as prod."""
    sections["charts"] = dict.fromkeys(CONTROLLERS, "existing")
    sections["monitoring"] = {"address": PROMETHEUS}
    sections["cluster"]["deletionProtection"] = True


def set_to(path: str, value: Any) -> Callable[[Sections], None]:
    """Set a setting, given by its path, to a value; None takes it away."""
    *groups, last = path.split(".")

    def change(sections: Sections) -> None:
        group = sections
        for name in groups:
            group = group.setdefault(name, {})
        group[last] = value
        if value is None:
            del group[last]

    return change


@dataclass(frozen=True)
class Case:
    """A setting's change. `with_it` are settings that have to change with it; `replaces` are types that may be
    replaced, and `reason` says why; `clients` are those that must have keys first; `alone` keeps the case out of the
    preview of all changes at once, which holds one of two that exclude each other."""

    path: str
    value: Any
    with_it: Mapping[str, Any] | None = None
    replaces: tuple[str, ...] = ()
    reason: str = ""
    clients: tuple[str, ...] = ()
    alone: bool = False

    def apply(self, sections: Sections) -> None:
        for path, value in {self.path: self.value, **(self.with_it or {})}.items():
            set_to(path, value)(sections)


MIRROR = "111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror"
ADMIN = "arn:aws:iam::111122223333:role/srvmod-platform-admins"
CERTIFICATE = "arn:aws:acm:us-east-1:111122223333:certificate/01234567-89ab-cdef-0123-456789abcdef"
PRICE = {"usd": 40.0, "readOn": "2026-11-29", "source": "a contract"}

MUTABLE = (
    Case("aws.logRetentionDays", 180),
    Case("network.natGateways", "perZone"),
    Case("network.flowLogs", False),
    Case("cluster.endpointPublicAccess", True, {"cluster.endpointPublicAccessCidrs": ["203.0.113.0/24"]}),
    Case("cluster.endpointPublicAccessCidrs", ["198.51.100.0/24"], {"cluster.endpointPublicAccess": True}),
    Case(
        "cluster.admins",
        [{"principalArn": ADMIN}, {"principalArn": "arn:aws:iam::111122223333:role/on-call", "scope": "view"}],
    ),
    Case("cluster.endpointPrivateAccessCidrs", ["10.40.0.0/16", "10.99.0.0/24"]),
    Case("cluster.planRoles", ["arn:aws:iam::111122223333:role/ci/srvmod-plan"]),
    Case(
        "cluster.systemNodes.instanceType",
        "m7i.2xlarge",
        replaces=(NODE_GROUP,),
        reason="instance types of a managed node group can't change: a second group, under a name of its own, is made "
        "before the first is drained and deleted",
    ),
    Case("cluster.systemNodes.count", 3),
    Case("cluster.deletionProtection", False),
    Case("pool.zones", ["us-east-1a", "us-east-1b"]),
    Case("pool.offeredZones", ["us-east-1a"]),
    Case("pool.amiAlias", "al2023@v20260801"),
    Case(
        "pool.reservations",
        [{"id": "cr-0123456789abcdef0", "zone": "us-east-1a"}, {"tags": {"purpose": "llm"}, "kind": "block"}],
    ),
    Case("pool.capacityTypes", ["on-demand"], alone=True),
    Case("pool.maxNodes", 9),
    Case("pool.emptyNodeSeconds", 900),
    Case("model.servedName", "another-name"),
    Case("model.revision", "2026-10-01"),
    Case("model.weightsPrefix", "models/elsewhere"),
    Case("model.kvCacheDtype", "bf16"),
    Case("model.kvScales", False),
    Case("model.maxModelLen", 4096),
    Case("traffic.sessions", 90),
    Case("traffic.promptTokens", 256),
    Case("traffic.outputTokens", 256),
    Case("traffic.prefixHitRate", 0.3),
    Case("traffic.tokensPerSecond", 1500),
    Case("slo.itlP95Ms", 28),
    Case("slo.ttftMs", 340),
    Case("engine.image", "docker.io/vllm/vllm-openai:v0.33.1"),
    Case("engine.started", False, alone=True),
    Case("engine.minEngines", 4),
    Case("engine.maxEngines", 10),
    Case(
        "engine.planWaiver",
        "head-of-ml: the mix is a forecast",
        {"engine.minEngines": 2, "traffic.sessions": 400},
        alone=True,
    ),
    Case("engine.maxNumBatchedTokens", 4096),
    Case("engine.shutdownTimeoutSeconds", 90),
    Case("engine.speculation", {"method": "draft_model"}),
    Case("engine.extraArgs", ["--max-log-len=100"]),
    Case("gateway.hostname", "inference2.dev.example.com"),
    Case("gateway.tlsSecret", "another-tls"),
    Case("gateway.certificateArn", CERTIFICATE, {"gateway.tlsSecret": None}, alone=True),
    Case("gateway.replicas", 4, {"cluster.systemNodes.count": 6}),
    Case("gateway.maxReplicas", 6, {"cluster.systemNodes.count": 6}),
    Case("gateway.maxStreamSeconds", 300),
    Case("gateway.scheme", "internet-facing"),
    Case("gateway.apiClients", ["platform-team", "second-team"], clients=("platform-team", "second-team"), alone=True),
    Case("monitoring.prometheus", "existing", alone=True),
    Case("monitoring.namespace", "observability"),
    Case("monitoring.address", "http://another.monitoring.svc:9090"),
    Case("monitoring.alertTopicArn", "arn:aws:sns:us-east-1:111122223333:llm-on-call"),
    Case(
        "monitoring.heartbeatTopicArn",
        "arn:aws:sns:us-east-1:111122223333:llm-heartbeat",
        {"monitoring.alertTopicArn": "arn:aws:sns:us-east-1:111122223333:llm-on-call"},
    ),
    Case("monitoring.alertReceiver", "llm-on-call", alone=True),
    Case("monitoring.runbooks", "https://docs.example.com/runbooks"),
    Case("images.registry", MIRROR),
    Case("images.weightCache", f"{MIRROR}/weight-cache:0.1.0"),
    Case("charts.repository", f"oci://{MIRROR}/charts"),
    Case("tags", {"environment": "dev", "owner": "another-team", "costCenter": "42"}),
    *(
        Case(f"prices.{name}", PRICE)
        for name in ("gpuNode", "systemNode", "cluster", "natGateway", "interfaceEndpoint", "loadBalancer",
                     "volumeGibMonth", "bucketGbMonth")
    ),
)  # fmt: skip
"""Settings that change in place, but for what `replaces` names."""

REPLACING = (
    Case(
        "network.cidr",
        "10.99.0.0/16",
        replaces=("aws:ec2/vpc:Vpc",),
        reason="a VPC keeps its first network: CidrBlock is create-only; make a second stack and move the traffic",
    ),
    Case(
        "network.zones",
        ["us-east-1a", "us-east-1b", "us-east-1d"],
        {"pool.zones": ["us-east-1a", "us-east-1b"]},
        replaces=("aws:ec2/subnet:Subnet",),
        reason="a subnet lies in one zone: the old zone's subnets go with everything in them",
    ),
    Case(
        "network.existing",
        {"vpcId": "vpc-0123456789abcdef0", "privateSubnetIds": [f"subnet-0123456789abcde{i}" for i in range(3)]},
        replaces=("aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"),
        reason="the program's own VPC would be deleted while the cluster lives in it; its subnets are refused first",
    ),
    Case(
        "cluster.name",
        "another",
        replaces=("aws:eks/cluster:Cluster", "aws:s3/bucket:Bucket"),
        reason="a cluster's name is its identity, and roles, queue and bucket are named after it",
    ),
    Case(
        "cluster.serviceCidr",
        "172.30.0.0/16",
        replaces=("aws:eks/cluster:Cluster",),
        reason="EKS takes the network of Services only when a cluster is made",
    ),
)
"""Settings whose change replaces what everything else lives in: refused by the engine where the cluster is
protected."""

FIXED = {
    "aws.accountId": "another account is another stack: the provider refuses to work in it",
    "aws.region": "another region is another stack",
    "aws.partition": "follows from the region",
    "aws.simulated": "simulated and real stacks have nothing in common",
    "aws.podEndpoint": "for simulated AWS only",
    "cluster.kubernetesVersion": "one version is allowed in this release; EKS changes it in place",
    "pool.instanceType": "MC-HW-01 allows one",
    "engine.kind": "the simulated engine is for simulated AWS only",
    "engine.tensorParallelSize": "MC-HW-01 allows one value",
    "engine.enginesPerNode": "MC-HW-01 allows one value",
    "model.id": "one model's shape is known in this release",
}
"""Settings that no deployed stack can change."""

CHARTS = tuple(f"charts.{name}" for name in CONTROLLERS)
"""Whether a controller is installed: compared as graphs, since the engine fetches a chart to preview it."""


def settings_paths(kind: type[Section] = Settings, above: str = "") -> Iterator[str]:
    """Every setting by its path. A section that may be absent, and a list, is one setting."""
    for name, field in kind.model_fields.items():
        if name == "stack":
            continue
        path = f"{above}{field.alias or name}"
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            yield from settings_paths(field.annotation, f"{path}.")
        else:
            yield path
