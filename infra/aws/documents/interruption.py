"""The interruption queue's policy and the events that reach it."""

from dataclasses import dataclass

from srvmod.infra.aws.documents.statements import Document, allow, deny_insecure_transport, document
from srvmod.infra.aws.names import Account


@dataclass(frozen=True)
class Event:
    """An EventBridge pattern: events of `source` with this detail type."""

    key: str
    description: str
    source: str
    detail_type: str

    def pattern(self) -> dict[str, list[str]]:
        """The rule's event pattern."""
        return {"source": [self.source], "detail-type": [self.detail_type]}


EVENTS = (
    Event("scheduled-change", "Maintenance and retirement", "aws.health", "AWS Health Event"),
    Event("spot-interruption", "Spot notice", "aws.ec2", "EC2 Spot Instance Interruption Warning"),
    Event("rebalance", "Raised interruption risk", "aws.ec2", "EC2 Instance Rebalance Recommendation"),
    Event("state-change", "Stopped or terminated", "aws.ec2", "EC2 Instance State-change Notification"),
    Event(
        "reservation-interruption",
        "Interruptible capacity reservation reclaimed",
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ),
)
"""What Karpenter's interruption controller understands (karpenter-provider-aws 1.14)."""


def queue_policy(account: Account, queue: str) -> Document:
    """EventBridge may send, nobody may talk to the queue in the clear.

    The sender is bound to this account, so that no rule of another account can drain our nodes.
    """
    arn = account.arn("sqs", queue)
    return document(
        allow(
            "EventsMaySend",
            ["sqs:SendMessage"],
            [arn],
            principal={"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
            conditions={"StringEquals": {"aws:SourceAccount": account.id}},
        ),
        deny_insecure_transport("sqs:*", [arn]),
    )
