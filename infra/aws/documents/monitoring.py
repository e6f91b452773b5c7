"""What Prometheus, KEDA and Alertmanager may do in AWS."""

import pulumi

from srvmod.infra.aws.documents.statements import Document, allow, document, to_json


def publish(topic_arn: str) -> Document:
    """Alertmanager: publish to the alerts' topic."""
    return document(allow("PublishAlerts", ["sns:Publish"], [topic_arn]))


def write(workspace_arn: pulumi.Output[str]) -> pulumi.Output[str]:
    """The collecting Prometheus: write to the workspace."""
    return workspace_arn.apply(lambda arn: to_json(document(allow("Write", ["aps:RemoteWrite"], [arn]))))


def query(workspace_arn: pulumi.Output[str]) -> pulumi.Output[str]:
    """KEDA: ask the workspace."""
    return workspace_arn.apply(lambda arn: to_json(document(allow("Query", ["aps:QueryMetrics"], [arn]))))
