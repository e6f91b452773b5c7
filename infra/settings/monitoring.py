"""Section about measuring: which Prometheus sees the engines, and who hears of an alert."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from srvmod.infra.labels import METRICS_NAMESPACE
from srvmod.infra.settings.base import Allowed, Name, Section


class PrometheusKind(StrEnum):
    """Where metrics are kept and alert rules evaluated."""

    OPERATOR = "operator"
    """A Prometheus of the Prometheus operator: it takes PodMonitor, PrometheusRule and AlertmanagerConfig."""
    AMAZON = "amazon"
    """Amazon Managed Service for Prometheus; a Prometheus in the cluster collects for it."""
    EXISTING = "existing"
    """Any other Prometheus; its owner loads the rules from a ConfigMap."""


WebAddress = Annotated[
    str,
    Field(pattern=r"^https?://[A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$", max_length=512),
    Allowed("an http or https address, such as http://prometheus.monitoring.svc:9090"),
]


TopicArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$"),
    Allowed("the ARN of an SNS topic, such as arn:aws:sns:us-east-1:111122223333:llm-on-call"),
]


class MonitoringSettings(Section):
    """Which Prometheus sees the engines, and who hears of an alert."""

    prometheus: Annotated[PrometheusKind, Allowed("operator, amazon or existing")] = PrometheusKind.OPERATOR
    """Prometheus of an operator, Amazon's managed one, or any other."""
    address: WebAddress | None = None
    """Where KEDA asks that Prometheus; the one that this program installs when left out."""
    namespace: Name = METRICS_NAMESPACE
    """Namespace of the Prometheus that collects: beside the gateway's the only one that reaches engines and weight
    caches. The program's own is in `monitoring`."""
    alert_topic_arn: TopicArn | None = None
    """SNS topic that alerts are published to."""
    heartbeat_topic_arn: TopicArn | None = None
    """SNS topic that gets a message every five minutes as long as rules are evaluated and alerts get out: an alarm on
    its silence, outside the cluster, hears when they don't. Never a person's topic."""
    alert_receiver: Name | None = None
    """Receiver of an Alertmanager that somebody else configures: each alert has it as label `receiver`."""
    runbooks: WebAddress | None = None
    """Where docs/runbooks of this repository can be read: put in front of each alert's runbook."""


__all__ = ["MonitoringSettings", "PrometheusKind"]
