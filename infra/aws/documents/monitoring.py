"""What Prometheus, KEDA and Alertmanager may do in AWS."""

from collections.abc import Sequence

import pulumi

from srvmod.infra.aws.documents.statements import Document, allow, document, to_json


def publish(topic_arns: Sequence[str]) -> Document:
    """Alertmanager: publish to the topics of alerts and heartbeats."""
    return document(allow("PublishAlerts", ["sns:Publish"], list(topic_arns)))


def write(workspace_arn: pulumi.Output[str]) -> pulumi.Output[str]:
    """The collecting Prometheus: write to the workspace."""
    return workspace_arn.apply(lambda arn: to_json(document(allow("Write", ["aps:RemoteWrite"], [arn]))))


def query(workspace_arn: pulumi.Output[str]) -> pulumi.Output[str]:
    """KEDA: ask the workspace."""
    return workspace_arn.apply(lambda arn: to_json(document(allow("Query", ["aps:QueryMetrics"], [arn]))))
