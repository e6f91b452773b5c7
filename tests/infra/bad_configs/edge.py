"""Gateway, images, charts and tags."""

from tests.infra.bad_configs.base import DELETE, SIMULATED, Case

CERTIFICATE = "arn:aws:acm:us-east-1:444455556666:certificate/01234567-89ab-cdef-0123-456789abcdef"

CASES: tuple[Case, ...] = (
    Case(
        "price without a date",
        {"prices.gpuNode": {"usd": 55.04, "source": "a contract"}},
        "srvmod:prices.gpuNode.readOn",
        "(missing)",
        "a date",
        "gpuNode",
    ),
    Case(
        "price of nothing",
        {"prices.natGateway": {"usd": 0, "readOn": "2026-11-29", "source": "a contract"}},
        "srvmod:prices.natGateway.usd",
        "0",
        "positive",
    ),
    Case(
        "certificate of another region",
        {"gateway.tlsSecret": DELETE, "gateway.certificateArn": CERTIFICATE.replace("us-east-1", "eu-west-2")},
        "srvmod:gateway.certificateArn",
        "eu-west-2",
        "a certificate of us-east-1",
    ),
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
        {"gateway.certificateArn": CERTIFICATE},
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
    Case("no room for Envoy", {"gateway.maxReplicas": 2}, "srvmod:gateway.maxReplicas", "2", "3 or more"),
    Case(
        "more Envoys on simulated AWS",
        {**SIMULATED, "gateway.maxReplicas": 4},
        "srvmod:gateway.maxReplicas",
        "4",
        "metrics-server",
    ),
    Case("short streams", {"gateway.maxStreamSeconds": 10}, "srvmod:gateway.maxStreamSeconds", "10", "at least 15"),
    Case(
        "streams that outlast a node's update",
        {"gateway.maxStreamSeconds": 841},
        "srvmod:gateway.maxStreamSeconds",
        "841",
        "from 10 to 840: an Envoy ends its streams before its node goes",
    ),
    Case(
        "an Envoy without a place",
        {"gateway.replicas": 3},
        "srvmod:gateway.replicas",
        "3",
        "cluster.systemNodes.count: 3; or a larger cluster.systemNodes.instanceType; or at most 2 here",
    ),
    Case(
        "no place to grow",
        {"gateway.maxReplicas": 6},
        "srvmod:gateway.maxReplicas",
        "6",
        "cluster.systemNodes.count: 6; or a larger cluster.systemNodes.instanceType; or at most 2 here",
    ),
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
