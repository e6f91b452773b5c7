"""Rules about Prometheus and where alerts go."""

from collections.abc import Iterator

from srvmod.infra.labels import METRICS_NAMESPACE
from srvmod.infra.settings.edge import ChartMode
from srvmod.infra.settings.monitoring import PrometheusKind
from srvmod.infra.settings.rules.engine import PRODUCTION
from srvmod.infra.settings.rules.finding import Finding, Rule
from srvmod.infra.settings.settings import Settings


def prometheus_has_an_address(s: Settings) -> Iterator[Finding]:
    """KEDA asks somebody: the Prometheus that is installed here, or one whose address is given, never two."""
    kind, address = s.monitoring.prometheus, s.monitoring.address
    ours = kind is not PrometheusKind.EXISTING and s.charts.prometheus_stack is ChartMode.INSTALL
    if address is None and not ours and not s.aws.simulated and kind is not PrometheusKind.AMAZON:
        yield Finding(
            ("monitoring", "address"),
            "is needed where the program installs no Prometheus: KEDA asks it for the engines' latency",
            "an http or https address, such as http://prometheus.monitoring.svc:9090",
        )
    if address is not None and ours:
        yield Finding(
            ("monitoring", "address"),
            "is given beside a Prometheus that this program installs",
            "no address, or charts.prometheusStack: existing",
        )


def chart_fits_the_prometheus(s: Settings) -> Iterator[Finding]:
    """Amazon's Prometheus collects nothing by itself, and beside an existing one a second would be idle."""
    kind, mode = s.monitoring.prometheus, s.charts.prometheus_stack
    if s.aws.simulated:
        return  # nothing can be installed there, which another rule says
    if kind is PrometheusKind.AMAZON and mode is ChartMode.EXISTING:
        yield Finding(
            ("charts", "prometheusStack"),
            "leaves nobody who collects for Amazon's Prometheus (monitoring.prometheus)",
            "install",
            mode.value,
        )
    if kind is PrometheusKind.EXISTING and mode is ChartMode.INSTALL:
        yield Finding(
            ("charts", "prometheusStack"),
            "installs a second Prometheus beside the existing one (monitoring.prometheus)",
            "existing",
            mode.value,
        )


def namespace_of_the_chart(s: Settings) -> Iterator[Finding]:
    """The chart's Prometheus is where the program installs it."""
    if s.charts.prometheus_stack is ChartMode.INSTALL and s.monitoring.namespace != METRICS_NAMESPACE:
        yield Finding(
            ("monitoring", "namespace"),
            f"isn't where the program installs Prometheus ({METRICS_NAMESPACE})",
            f"{METRICS_NAMESPACE}, or charts.prometheusStack: existing",
            s.monitoring.namespace,
        )


def simulated_aws_has_no_managed_prometheus(s: Settings) -> Iterator[Finding]:
    """The simulated account knows neither the service nor SNS."""
    kind, topic = s.monitoring.prometheus, s.monitoring.alert_topic_arn
    if s.aws.simulated and kind is PrometheusKind.AMAZON:
        yield Finding(("monitoring", "prometheus"), "isn't part of simulated AWS", "operator or existing", kind.value)
    if s.aws.simulated and topic is not None:
        yield Finding(("monitoring", "alertTopicArn"), "simulated AWS has no SNS", "no topic; remove the key", topic)


def alerts_reach_somebody(s: Settings) -> Iterator[Finding]:
    """An alert that nobody hears is none: prod names who does. Amazon's Alertmanager publishes to SNS only, and
    nothing of ours configures an existing one."""
    kind, topic, receiver = s.monitoring.prometheus, s.monitoring.alert_topic_arn, s.monitoring.alert_receiver
    if topic is not None and receiver is not None:
        yield Finding(("monitoring", "alertReceiver"), "is given beside monitoring.alertTopicArn", "one of the two")
    if topic is not None and kind is PrometheusKind.EXISTING:
        yield Finding(
            ("monitoring", "alertTopicArn"),
            "has nobody who publishes to it: an existing Prometheus has an Alertmanager of its own",
            "monitoring.alertReceiver, a name that its Alertmanager routes by",
        )
    if s.aws.simulated:
        return
    if kind is PrometheusKind.AMAZON and topic is None:
        yield Finding(
            ("monitoring", "alertTopicArn"), "is needed: Amazon's Prometheus alerts by SNS", "an SNS topic's ARN"
        )
    elif s.stack == PRODUCTION and topic is None and receiver is None:
        yield Finding(
            ("monitoring", "alertTopicArn"),
            "is needed in prod, or monitoring.alertReceiver: nobody would hear of an alert",
            "the ARN of an SNS topic, such as arn:aws:sns:us-east-1:111122223333:llm-on-call",
        )


def heartbeats_go_elsewhere(s: Settings) -> Iterator[Finding]:
    """Who watches for silence gets a message every five minutes, and by the way that alerts take."""
    heartbeat, topic = s.monitoring.heartbeat_topic_arn, s.monitoring.alert_topic_arn
    if heartbeat is None:
        return
    if topic is None:
        yield Finding(
            ("monitoring", "heartbeatTopicArn"),
            "shows that alerts get out, and they don't go by SNS",
            "monitoring.alertTopicArn beside it; or remove the key, and let your own Alertmanager be watched",
        )
    elif heartbeat == topic:
        yield Finding(
            ("monitoring", "heartbeatTopicArn"),
            "is the topic of the alerts: whoever hears them would get a message every five minutes",
            "a topic of its own, with an alarm on its silence",
        )


RULES: tuple[Rule, ...] = (
    prometheus_has_an_address,
    chart_fits_the_prometheus,
    namespace_of_the_chart,
    simulated_aws_has_no_managed_prometheus,
    alerts_reach_somebody,
    heartbeats_go_elsewhere,
)
