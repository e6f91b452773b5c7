"""Prometheus and where alerts go."""

from tests.infra.bad_configs.base import DELETE, SIMULATED, Case

TOPIC = "arn:aws:sns:us-east-1:444455556666:llm-on-call"
ADDRESS = "http://prometheus.monitoring.svc:9090"

CASES: tuple[Case, ...] = (
    Case(
        "existing operator without address",
        {"charts.prometheusStack": "existing"},
        "srvmod:monitoring.address",
        "(missing)",
        "http or https",
        "srvmod:monitoring",
    ),
    Case(
        "address beside an own Prometheus",
        {"monitoring.address": ADDRESS},
        "srvmod:monitoring.address",
        ADDRESS,
        "charts.prometheusStack: existing",
    ),
    Case(
        "address without scheme",
        {"charts.prometheusStack": "existing", "monitoring.address": "prometheus:9090"},
        "srvmod:monitoring.address",
        "prometheus:9090",
        "http or https",
    ),
    Case(
        "our Prometheus elsewhere",
        {"monitoring.namespace": "observability"},
        "srvmod:monitoring.namespace",
        "observability",
        "monitoring, or charts.prometheusStack: existing",
    ),
    Case(
        "second Prometheus",
        {
            "monitoring.prometheus": "existing",
            "monitoring.address": ADDRESS,
            "monitoring.alertTopicArn": DELETE,
            "charts.prometheusStack": "install",
        },
        "srvmod:charts.prometheusStack",
        "install",
        "existing",
    ),
    Case(
        "nobody collects for Amazon",
        {"monitoring.prometheus": "amazon", "charts.prometheusStack": "existing"},
        "srvmod:charts.prometheusStack",
        "existing",
        "install",
    ),
    Case(
        "Amazon without topic",
        {"monitoring.prometheus": "amazon", "monitoring.alertTopicArn": DELETE},
        "srvmod:monitoring.alertTopicArn",
        "(missing)",
        "an SNS topic's ARN",
        "srvmod:monitoring",
    ),
    Case(
        "queue as topic",
        {"monitoring.alertTopicArn": TOPIC.replace("sns", "sqs")},
        "srvmod:monitoring.alertTopicArn",
        "arn:aws:sqs",
        "an SNS topic",
    ),
    Case(
        "two places for alerts",
        {"monitoring.alertReceiver": "llm"},
        "srvmod:monitoring.alertReceiver",
        "llm",
        "one of the two",
    ),
    Case(
        "heartbeats to people",
        {"monitoring.heartbeatTopicArn": TOPIC},
        "srvmod:monitoring.heartbeatTopicArn",
        "llm-on-call",
        "a topic of its own",
    ),
    Case(
        "heartbeats without alerts by SNS",
        {
            "monitoring.alertTopicArn": DELETE,
            "monitoring.alertReceiver": "llm",
            "monitoring.heartbeatTopicArn": TOPIC,
        },
        "srvmod:monitoring.heartbeatTopicArn",
        "llm-on-call",
        "monitoring.alertTopicArn beside it",
    ),
    Case(
        "topic of an existing Prometheus",
        {
            "monitoring.prometheus": "existing",
            "monitoring.address": ADDRESS,
            "charts.prometheusStack": "existing",
        },
        "srvmod:monitoring.alertTopicArn",
        "llm-on-call",
        "monitoring.alertReceiver",
    ),
    Case(
        "nobody hears prod",
        {"monitoring.alertTopicArn": DELETE, "cluster.deletionProtection": True},
        "srvmod:monitoring.alertTopicArn",
        "(missing)",
        "monitoring.alertReceiver",
        "srvmod:monitoring",
        stack="prod",
    ),
    Case(
        "Amazon's Prometheus on simulated AWS",
        {**SIMULATED, "monitoring.prometheus": "amazon"},
        "srvmod:monitoring.prometheus",
        "amazon",
        "operator or existing",
    ),
    Case(
        "topic on simulated AWS",
        {**SIMULATED, "monitoring.alertTopicArn": TOPIC},
        "srvmod:monitoring.alertTopicArn",
        "llm-on-call",
        "no topic",
    ),
)
