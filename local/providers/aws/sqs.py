"""Queues and their policies."""

from __future__ import annotations

from typing import ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, tag_changes
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.values import Props

_ATTRIBUTES = {
    "messageRetentionSeconds": "MessageRetentionPeriod",
    "sqsManagedSseEnabled": "SqsManagedSseEnabled",
    "visibilityTimeoutSeconds": "VisibilityTimeout",
    "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
    "delaySeconds": "DelaySeconds",
    "kmsMasterKeyId": "KmsMasterKeyId",
}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Queue(Resource):
    token = "aws:sqs/queue:Queue"
    cfn = "AWS::SQS::Queue"
    args: ClassVar = {
        "name": Arg("QueueName"),
        **{name: Arg(cfn) for name, cfn in _ATTRIBUTES.items()},
        **TAGS,
    }
    outputs = ("arn", "url")
    autoname = "name"
    longest_name = 80

    def create(self, aws: Aws, props: Props) -> str:
        attributes = {_ATTRIBUTES[k]: _text(v) for k, v in props.items() if k in _ATTRIBUTES}
        tags = aws.tags(props) or None
        return str(aws("sqs", "create_queue", QueueName=props["name"], Attributes=attributes, tags=tags)["QueueUrl"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = aws("sqs", "get_queue_attributes", QueueUrl=identity, AttributeNames=["All"])["Attributes"]
        state: Props = {
            "arn": found["QueueArn"],
            "url": identity,
            "name": found["QueueArn"].rsplit(":", 1)[1],
            "tags": aws("sqs", "list_queue_tags", QueueUrl=identity).get("Tags", {}),
        }
        for name, attribute in _ATTRIBUTES.items():
            if attribute in found:
                state[name] = _typed(found[attribute])
        return state

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        attributes = {_ATTRIBUTES[k]: _text(v) for k, v in new.items() if k in _ATTRIBUTES and old.get(k) != v}
        if attributes:
            aws("sqs", "set_queue_attributes", QueueUrl=identity, Attributes=attributes)
        put, gone = tag_changes(aws, old, new)
        if put:
            aws("sqs", "tag_queue", QueueUrl=identity, Tags=put)
        if gone:
            aws("sqs", "untag_queue", QueueUrl=identity, TagKeys=gone)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("sqs", "delete_queue", QueueUrl=identity)


def _typed(text: str) -> int | bool | str:
    if text in {"true", "false"}:
        return text == "true"
    return int(text) if text.isdigit() else text


class QueuePolicy(Resource):
    token = "aws:sqs/queuePolicy:QueuePolicy"
    cfn = "AWS::SQS::QueuePolicy"
    args: ClassVar = {
        "queueUrl": Arg("Queues", required=True, identity=True),
        "policy": Arg("PolicyDocument", required=True, document=True),
    }

    def create(self, aws: Aws, props: Props) -> str:
        self.update(aws, "", {}, props)
        return str(props["queueUrl"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = aws("sqs", "get_queue_attributes", QueueUrl=identity, AttributeNames=["Policy"])
        policy = found.get("Attributes", {}).get("Policy")
        return {"queueUrl": identity, "policy": policy} if policy else None

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        aws("sqs", "set_queue_attributes", QueueUrl=new["queueUrl"], Attributes={"Policy": new["policy"]})

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("sqs", "set_queue_attributes", QueueUrl=identity, Attributes={"Policy": ""})


TYPES: tuple[Resource, ...] = (Queue(), QueuePolicy())
