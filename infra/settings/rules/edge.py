"""Rules about the gateway, charts and tags."""

from collections.abc import Iterator

from srvmod.infra.settings.edge import ChartMode
from srvmod.infra.settings.rules.finding import Finding, Rule
from srvmod.infra.settings.settings import Settings

RESERVED_TAGS = ("aws:", "kubernetes.io/", "karpenter.sh/", "eks:")
FEWEST_REPLICAS = 2


def traffic_is_encrypted(s: Settings) -> Iterator[Finding]:
    """Prompts and API keys cross a network in every real environment."""
    if not s.aws.simulated and not s.gateway.tls:
        yield Finding(
            ("gateway", "tlsSecret"),
            "clients would send prompts and API keys in the clear",
            "the name of a Secret with a certificate, or gateway.certificateArn",
        )


def one_end_of_tls(s: Settings) -> Iterator[Finding]:
    """TLS ends at Envoy or at the load balancer."""
    if s.gateway.tls_secret is not None and s.gateway.certificate_arn is not None:
        yield Finding(("gateway", "certificateArn"), "is given beside gateway.tlsSecret", "one of the two, not both")


def public_gateway_has_a_name(s: Settings) -> Iterator[Finding]:
    """A certificate is for a name."""
    if s.gateway.scheme == "internet-facing" and s.gateway.hostname is None:
        yield Finding(("gateway", "hostname"), "gateway.scheme is internet-facing", "the DNS name that clients use")


def certificate_of_the_region(s: Settings) -> Iterator[Finding]:
    """A load balancer takes certificates of its own region and account."""
    arn = s.gateway.certificate_arn
    if arn is not None and arn.split(":")[3:5] != [s.aws.region, s.aws.account_id]:
        yield Finding(
            ("gateway", "certificateArn"),
            "is of another region or account",
            f"a certificate of {s.aws.region} in account {s.aws.account_id}",
        )


def gateway_survives_a_node(s: Settings) -> Iterator[Finding]:
    """One Envoy pod is one point of failure."""
    if not s.aws.simulated and s.gateway.replicas < FEWEST_REPLICAS:
        yield Finding(
            ("gateway", "replicas"), "one pod alone cuts all streams when its node goes", f"at least {FEWEST_REPLICAS}"
        )


def gateway_grows_where_cpu_is_measured(s: Settings) -> Iterator[Finding]:
    """Envoy's autoscaler needs a range, and metrics-server, which is an add-on of EKS."""
    most = s.gateway.max_replicas
    if most is None:
        return
    if s.aws.simulated:
        yield Finding(
            ("gateway", "maxReplicas"), "needs metrics-server, which simulated AWS doesn't run", "remove the key"
        )
    elif most <= s.gateway.replicas:
        yield Finding(
            ("gateway", "maxReplicas"), "leaves no room above gateway.replicas", f"{s.gateway.replicas + 1} or more"
        )


def streams_outlast_an_answer(s: Settings) -> Iterator[Finding]:
    """The longest stream must hold the mean answer at the slowest pace that is allowed."""
    needed = s.traffic.output_tokens * s.slo.itl_p95_ms / 1e3
    if s.gateway.max_stream_seconds < needed:
        yield Finding(
            ("gateway", "maxStreamSeconds"),
            f"is less than a mean answer takes ({s.traffic.output_tokens} tokens at {s.slo.itl_p95_ms:g} ms)",
            f"at least {needed:.0f}",
            s.gateway.max_stream_seconds,
        )


def charts_of_simulated_stacks(s: Settings) -> Iterator[Finding]:
    """One machine has no images of these controllers."""
    if not s.aws.simulated:
        return
    for key, mode in (
        ("keda", s.charts.keda),
        ("loadBalancerController", s.charts.load_balancer_controller),
        ("prometheusStack", s.charts.prometheus_stack),
    ):
        if mode is ChartMode.INSTALL:
            yield Finding(("charts", key), "can't be installed on simulated AWS", "existing", mode.value)


def tags_are_free(s: Settings) -> Iterator[Finding]:
    """Tags that controllers find things by are the program's."""
    for key in s.tags:
        if key.startswith(RESERVED_TAGS):
            yield Finding(
                ("tags", key), "is a tag of AWS or of a controller", f"keys that don't start with {RESERVED_TAGS}"
            )


RULES: tuple[Rule, ...] = (
    traffic_is_encrypted,
    one_end_of_tls,
    public_gateway_has_a_name,
    certificate_of_the_region,
    gateway_survives_a_node,
    gateway_grows_where_cpu_is_measured,
    streams_outlast_an_answer,
    charts_of_simulated_stacks,
    tags_are_free,
)
