"""Starts Karpenter once its CRDs, its interruption queue and the program's first node class exist.

The queue is the program's own (NodeIdentity); Karpenter exits at start when it can't find it, as it does on AWS, so
here the process waits for the first `pulumi up` instead of crash-looping beside it. Its build with simulated writes
also reads subnets only once, at its start; the node class comes after them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from kubernetes.client import ApiClient, CustomObjectsApi
from kubernetes.client.exceptions import ApiException

from srvmod.local.kube import api_client, untyped
from srvmod.local.waiting import crd_established, until


def queue_exists(name: str) -> bool:
    try:
        boto3.client("sqs").get_queue_url(QueueName=name)
    except (ClientError, BotoCoreError):
        return False
    return True


def any_node_class(client: ApiClient) -> bool:
    objects = untyped(CustomObjectsApi(client))
    try:
        return bool(objects.list_cluster_custom_object("karpenter.k8s.aws", "v1", "ec2nodeclasses")["items"])
    except (ApiException, OSError):
        return False


def main() -> None:
    queue, client = os.environ["INTERRUPTION_QUEUE"], api_client(Path(os.environ["KUBECONFIG"]))
    until("Karpenter's CRDs", lambda: crd_established(client, "ec2nodeclasses.karpenter.k8s.aws"))
    until(f"queue {queue}", lambda: queue_exists(queue))
    until("an EC2NodeClass", lambda: any_node_class(client))
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
