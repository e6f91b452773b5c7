"""Bad configurations: what is changed in a good one, and what the one problem must say.

`value` and `allowed` are parts of the problem's text; `line` is a part of the line that the problem must point to,
the text after the key's last dot when left out.
"""

from dataclasses import dataclass, field
from typing import Any

from tests.infra.bad_configs.base import DELETE


@dataclass(frozen=True)
class Case:
    """One bad configuration."""

    name: str
    changes: dict[str, Any] = field(hash=False)
    key: str
    value: str
    allowed: str
    line: str | None = None
    stack: str = "case"


SIMULATED: dict[str, Any] = {
    "aws.accountId": "123456789012",
    "aws.simulated": True,
    "aws.podEndpoint": "http://10.88.0.1:5000",
    "charts.keda": "existing",
    "charts.loadBalancerController": "existing",
    "charts.prometheusStack": "existing",
}
EXISTING = {"vpcId": "vpc-0123456789abcdef0", "privateSubnetIds": ["subnet-0123456789abcdef0"]}
BLOCK = {"id": "cr-0123456789abcdef0", "zone": "us-east-1c", "kind": "block"}

CASES: tuple[Case, ...] = (
    # missing
    Case("account missing", {"aws.accountId": DELETE}, "srvmod:aws.accountId", "(missing)", "12 digits", "srvmod:aws"),
    Case("section missing", {"traffic": DELETE}, "srvmod:traffic.sessions", "(missing)", "whole number", ""),
    Case(
        "sessions missing",
        {"traffic.sessions": DELETE},
        "srvmod:traffic.sessions",
        "(missing)",
        "1 to 100,000",
        "srvmod:traffic",
    ),
    Case(
        "revision missing", {"model.revision": DELETE}, "srvmod:model.revision", "(missing)", "not main", "srvmod:model"
    ),
    Case("image missing", {"engine": {}}, "srvmod:engine.image", "(missing)", "fixed tag or digest", "srvmod:engine"),
    # wrong type
    Case("account as number", {"aws.accountId": 444455556666}, "srvmod:aws.accountId", "444455556666", "in quotes"),
    Case("section as text", {"traffic": "650"}, "srvmod:traffic", '"650"', "a mapping with the keys sessions"),
    Case("section as list", {"aws": []}, "srvmod:aws", "[]", "a mapping with the keys accountId"),
    Case("section empty", {"model": None}, "srvmod:model", "null", "a mapping with the keys"),
    Case("sessions as text", {"traffic.sessions": "650"}, "srvmod:traffic.sessions", '"650"', "whole number"),
    Case("sessions as fraction", {"traffic.sessions": 650.5}, "srvmod:traffic.sessions", "650.5", "whole number"),
    Case("flag as text", {"model.kvScales": "yes"}, "srvmod:model.kvScales", '"yes"', "true or false"),
    Case("zones as text", {"pool.zones": "us-east-1a"}, "srvmod:pool.zones", '"us-east-1a"', "a list of different"),
    Case(
        "version as number",
        {"cluster.kubernetesVersion": 1.36},
        "srvmod:cluster.kubernetesVersion",
        "1.36",
        "in quotes",
    ),
    Case("admins as text", {"cluster.admins": "root"}, "srvmod:cluster.admins", '"root"', "principalArn"),
    Case("tags as list", {"tags": ["a"]}, "srvmod:tags", '["a"]', "text in quotes"),
    Case("tag as number", {"tags": {"cost": 7}}, "srvmod:tags.cost", "7", "text in quotes"),
    # unknown keys
    Case("unknown key", {"traffic.promptToken": 5}, "srvmod:traffic.promptToken", "5", "promptTokens"),
    Case("snake case", {"engine.min_engines": 5}, "srvmod:engine.min_engines", "5", "minEngines"),
    Case("unknown section", {"netwrok": {"a": 1}}, "srvmod:netwrok", "{a: 1}", "network"),
    Case(
        "unknown nested key",
        {"network.existing": {**EXISTING, "vpc": "x"}},
        "srvmod:network.existing.vpc",
        '"x"',
        "vpcId",
    ),
    # network
    Case("CIDR overlap", {"network.cidr": "172.20.0.0/16"}, "srvmod:network.cidr", "172.20.0.0/16", "don't overlap"),
    Case("CIDR too small", {"network.cidr": "10.60.0.0/24"}, "srvmod:network.cidr", "10.60.0.0/24", "/16 to /20"),
    Case("CIDR too large", {"network.cidr": "10.0.0.0/8"}, "srvmod:network.cidr", "10.0.0.0/8", "/16 to /20"),
    Case("CIDR public", {"network.cidr": "8.8.0.0/16"}, "srvmod:network.cidr", "8.8.0.0/16", "private IPv4"),
    Case(
        "CIDR with host bits", {"network.cidr": "10.60.0.1/16"}, "srvmod:network.cidr", "10.60.0.1/16", "10.20.0.0/16"
    ),
    Case(
        "two zones",
        {"network.zones": ["us-east-1a", "us-east-1b"]},
        "srvmod:network.zones",
        "us-east-1b",
        "exactly three",
    ),
    Case(
        "a zone twice",
        {"network.zones": ["us-east-1a", "us-east-1b", "us-east-1b"]},
        "srvmod:network.zones",
        "us-east-1b",
        "different",
    ),
    Case(
        "zone elsewhere",
        {"network.zones": ["us-east-1a", "us-east-1b", "us-west-2a"]},
        "srvmod:network.zones[2]",
        "us-west-2a",
        "zones of us-east-1",
        "us-west-2a",
    ),
    Case(
        "NAT unknown", {"network.natGateways": "two"}, "srvmod:network.natGateways", '"two"', "perZone, single or none"
    ),
    Case(
        "no NAT, no mirror",
        {"network.natGateways": "none"},
        "srvmod:images.registry",
        "(missing)",
        "mirror inside AWS",
        "",
    ),
    Case(
        "subnets per zone",
        {"network.existing": EXISTING},
        "srvmod:network.existing.privateSubnetIds",
        "subnet-0123456789abcdef0",
        "3 subnets",
    ),
    Case(
        "VPC id",
        {"network.existing": {**EXISTING, "vpcId": "my-vpc"}},
        "srvmod:network.existing.vpcId",
        "my-vpc",
        "a VPC id",
    ),
    # account and cluster
    Case(
        "simulated account", {"aws.accountId": "123456789012"}, "srvmod:aws.accountId", "123456789012", "of the company"
    ),
    Case(
        "pod endpoint on AWS",
        {"aws.podEndpoint": "http://10.0.0.1:80"},
        "srvmod:aws.podEndpoint",
        "10.0.0.1",
        "no podEndpoint",
    ),
    Case("partition", {"aws.partition": "aws-cn"}, "srvmod:aws.partition", "aws-cn", "aws"),
    Case(
        "public without CIDRs",
        {"cluster.endpointPublicAccess": True},
        "srvmod:cluster.endpointPublicAccessCidrs",
        "(missing)",
        "list of networks",
        "srvmod:cluster",
    ),
    Case(
        "public to everyone",
        {"cluster.endpointPublicAccess": True, "cluster.endpointPublicAccessCidrs": ["0.0.0.0/0"]},
        "srvmod:cluster.endpointPublicAccessCidrs[0]",
        "0.0.0.0/0",
        "never 0.0.0.0/0",
        "0.0.0.0/0",
    ),
    Case(
        "public to half of everyone",
        {"cluster.endpointPublicAccess": True, "cluster.endpointPublicAccessCidrs": ["128.0.0.0/1"]},
        "srvmod:cluster.endpointPublicAccessCidrs[0]",
        "128.0.0.0/1",
        "/8 or narrower",
        "128.0.0.0/1",
    ),
    Case(
        "CIDRs, but private",
        {"cluster.endpointPublicAccessCidrs": ["203.0.113.0/24"]},
        "srvmod:cluster.endpointPublicAccessCidrs",
        "203.0.113.0/24",
        "public access",
    ),
    Case("nobody can enter", {"cluster.admins": []}, "srvmod:cluster.admins", "[]", "at least one entry"),
    Case(
        "admin twice",
        {"cluster.admins": [{"principalArn": "arn:aws:iam::444455556666:role/a"}] * 2},
        "srvmod:cluster.admins[1].principalArn",
        "role/a",
        "each principal once",
    ),
    Case(
        "admin no ARN",
        {"cluster.admins": [{"principalArn": "admins"}]},
        "srvmod:cluster.admins[0].principalArn",
        "admins",
        "ARN of an IAM role",
    ),
    Case("one system node", {"cluster.systemNodes": {"min": 1}}, "srvmod:cluster.systemNodes.min", "1", "2 to 20"),
    Case(
        "system nodes reversed",
        {"cluster.systemNodes": {"min": 5, "max": 3}},
        "srvmod:cluster.systemNodes.max",
        "3",
        "at least 5",
    ),
    Case(
        "system nodes with GPUs",
        {"cluster.systemNodes": {"instanceType": "p5.48xlarge"}},
        "srvmod:cluster.systemNodes.instanceType",
        "p5.48xlarge",
        "general-purpose",
    ),
    Case("old Kubernetes", {"cluster.kubernetesVersion": "1.29"}, "srvmod:cluster.kubernetesVersion", "1.29", "1.36"),
    Case(
        "prod unprotected",
        {"cluster.deletionProtection": False},
        "srvmod:cluster.deletionProtection",
        "false",
        "true",
        stack="prod",
    ),
    # pool
    Case(
        "other instance",
        {"pool.instanceType": "p4d.24xlarge"},
        "srvmod:pool.instanceType",
        "p4d.24xlarge",
        "p5.48xlarge (clause MC-HW-01)",
    ),
    Case(
        "zone without p5",
        {
            "aws.region": "us-west-1",
            "network.zones": ["us-west-1a", "us-west-1b", "us-west-1c"],
            "pool.zones": ["us-west-1c"],
        },
        "srvmod:pool.zones[0]",
        "us-west-1c",
        "us-west-1a, us-west-1b",
        "- us-west-1c",
    ),
    Case(
        "zone without subnet",
        {"pool.zones": ["us-east-1a", "us-east-1d"]},
        "srvmod:pool.zones[1]",
        "us-east-1d",
        "us-east-1a, us-east-1b, us-east-1c",
        "us-east-1d",
    ),
    Case("no zone", {"pool.zones": []}, "srvmod:pool.zones", "[]", "a list of different"),
    Case(
        "reservation in another zone",
        {"pool.reservations": [BLOCK]},
        "srvmod:pool.reservations[0].zone",
        "us-east-1c",
        "us-east-1a, us-east-1b",
    ),
    Case(
        "reservation twice",
        {"pool.reservations": [{**BLOCK, "zone": "us-east-1a"}] * 2},
        "srvmod:pool.reservations",
        "cr-0123456789abcdef0",
        "different ids",
    ),
    Case(
        "reservation unused",
        {"pool.reservations": [{**BLOCK, "zone": "us-east-1a"}], "pool.capacityTypes": ["on-demand"]},
        "srvmod:pool.capacityTypes",
        "on-demand",
        "with reserved in it",
    ),
    Case(
        "only reserved, none given",
        {"pool.capacityTypes": ["reserved"]},
        "srvmod:pool.reservations",
        "(missing)",
        "at least one reservation",
        "srvmod:pool",
    ),
    Case("spot", {"pool.capacityTypes": ["spot"]}, "srvmod:pool.capacityTypes", "spot", "spot would cut streams"),
    Case("floating AMI", {"pool.amiAlias": "al2023@latest"}, "srvmod:pool.amiAlias", "al2023@latest", "not 'latest'"),
    Case("too few nodes", {"pool.maxNodes": 1}, "srvmod:pool.maxNodes", "1", "at least 4"),
    # model and traffic
    Case("other model", {"model.id": "gpt2"}, "srvmod:model.id", "gpt2", "Meta-Llama-3-70B-Instruct"),
    Case("moving revision", {"model.revision": "main"}, "srvmod:model.revision", "main", "never change"),
    Case("KV type", {"model.kvCacheDtype": "int4"}, "srvmod:model.kvCacheDtype", "int4", "fp8 or bf16"),
    Case("context too long", {"model.maxModelLen": 16384}, "srvmod:model.maxModelLen", "16384", "at most 8192"),
    Case("context too short", {"model.maxModelLen": 1000}, "srvmod:model.maxModelLen", "1000", "1024 to 8192"),
    Case("traffic of 0 sessions", {"traffic.sessions": 0}, "srvmod:traffic.sessions", "0", "1 to 100,000"),
    Case("negative sessions", {"traffic.sessions": -650}, "srvmod:traffic.sessions", "-650", "1 to 100,000"),
    Case("negative prompt", {"traffic.promptTokens": -1}, "srvmod:traffic.promptTokens", "-1", "1 to 1,000,000"),
    Case("hit rate above 1", {"traffic.prefixHitRate": 1.5}, "srvmod:traffic.prefixHitRate", "1.5", "0 to less than 1"),
    Case(
        "not a number",
        {"traffic.prefixHitRate": float("nan")},
        "srvmod:traffic.prefixHitRate",
        "NaN",
        "0 to less than 1",
    ),
    Case("impossible rate", {"traffic.tokensPerSecond": 80000}, "srvmod:traffic.tokensPerSecond", "80000", "at most"),
    Case("looser ITL", {"slo.itlP95Ms": 60}, "srvmod:slo.itlP95Ms", "60", "30 ms (clause INV-SRVMOD-02)"),
    Case("impossible ITL", {"slo.itlP95Ms": 5}, "srvmod:slo.itlP95Ms", "5", "at least 1"),
    Case("impossible TTFT", {"slo.ttftMs": 20}, "srvmod:slo.ttftMs", "20", "at least"),
    # engine
    Case("TP 8", {"engine.tensorParallelSize": 8}, "srvmod:engine.tensorParallelSize", "8", "4 (clause MC-HW-01)"),
    Case("TP 2", {"engine.tensorParallelSize": 2}, "srvmod:engine.tensorParallelSize", "2", "4 (clause MC-HW-01)"),
    Case(
        "3 engines per node", {"engine.enginesPerNode": 3}, "srvmod:engine.enginesPerNode", "3", "2 (clause MC-HW-01)"
    ),
    Case("simulated engine on AWS", {"engine.kind": "simulated"}, "srvmod:engine.kind", "simulated", "vllm"),
    Case("no engine", {"engine.minEngines": 0}, "srvmod:engine.minEngines", "0", "1 to 2,000"),
    Case(
        "engines reversed",
        {"engine.minEngines": 10, "engine.maxEngines": 4},
        "srvmod:engine.maxEngines",
        "4",
        "at least 10",
    ),
    Case(
        "small budget",
        {"engine.minEngines": 2, "engine.maxNumBatchedTokens": 512},
        "srvmod:engine.maxNumBatchedTokens",
        "512",
        "at least 976",
    ),
    Case("no drain", {"engine.shutdownTimeoutSeconds": 0}, "srvmod:engine.shutdownTimeoutSeconds", "0", "1 to 600"),
    Case(
        "short drain", {"engine.shutdownTimeoutSeconds": 5}, "srvmod:engine.shutdownTimeoutSeconds", "5", "at least 15"
    ),
    Case(
        "floating image",
        {"engine.image": "docker.io/vllm/vllm-openai:latest"},
        "srvmod:engine.image",
        "latest",
        "not 'latest'",
    ),
    Case(
        "image without tag",
        {"engine.image": "docker.io/vllm/vllm-openai"},
        "srvmod:engine.image",
        "vllm-openai",
        "fixed tag or digest",
    ),
    Case(
        "own flag again",
        {"engine.extraArgs": ["--tensor_parallel_size=8"]},
        "srvmod:engine.extraArgs[0]",
        "--tensor_parallel_size=8",
        "engine.tensorParallelSize",
        "--tensor_parallel_size",
    ),
    # gateway, images, charts, tags
    Case(
        "no TLS",
        {"gateway.tlsSecret": DELETE},
        "srvmod:gateway.tlsSecret",
        "(missing)",
        "certificate",
        "srvmod:gateway",
    ),
    Case(
        "two certificates",
        {
            "gateway.certificateArn": "arn:aws:acm:us-east-1:444455556666:certificate/01234567-89ab-cdef-0123-456789abcdef"
        },
        "srvmod:gateway.certificateArn",
        "arn:aws:acm",
        "not both",
    ),
    Case(
        "public without name",
        {"gateway.scheme": "internet-facing", "gateway.hostname": DELETE},
        "srvmod:gateway.hostname",
        "(missing)",
        "DNS name",
        "srvmod:gateway",
    ),
    Case("host name", {"gateway.hostname": "https://x"}, "srvmod:gateway.hostname", "https://x", "a DNS name"),
    Case("one Envoy", {"gateway.replicas": 1}, "srvmod:gateway.replicas", "1", "at least 2"),
    Case("short streams", {"gateway.maxStreamSeconds": 10}, "srvmod:gateway.maxStreamSeconds", "10", "at least 15"),
    Case("no clients", {"gateway.apiClients": []}, "srvmod:gateway.apiClients", "[]", "at least one"),
    Case("client twice", {"gateway.apiClients": ["web", "web"]}, "srvmod:gateway.apiClients", "web", "different names"),
    Case(
        "registry with scheme",
        {"images.registry": "https://mirror"},
        "srvmod:images.registry",
        "https://mirror",
        "a registry with an optional path",
    ),
    Case("chart mode", {"charts.keda": "no"}, "srvmod:charts.keda", '"no"', "install or existing"),
    Case(
        "chart repository", {"charts.repository": "mirror"}, "srvmod:charts.repository", "mirror", "oci:// or https://"
    ),
    Case(
        "chart on simulated AWS", {**SIMULATED, "charts.keda": "install"}, "srvmod:charts.keda", "install", "existing"
    ),
    Case(
        "simulated without endpoint",
        {**SIMULATED, "aws.podEndpoint": None},
        "srvmod:aws.podEndpoint",
        "(missing)",
        "10.88.0.1:5000",
    ),
    Case(
        "simulated, other account",
        {**SIMULATED, "aws.accountId": "444455556666"},
        "srvmod:aws.accountId",
        "444455556666",
        "123456789012",
    ),
    Case("tag of AWS", {"tags": {"aws:name": "x"}}, "srvmod:tags.aws:name", '"x"', "don't start with"),
    Case(
        "encrypted setting",
        {"model.revision": {"secure": "v1:abc"}},
        "srvmod:model.revision",
        "(encrypted)",
        "a plain value",
    ),
)
