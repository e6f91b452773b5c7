"""Starts Karpenter once its CRDs and its interruption queue exist.

The queue is the program's own (NodeIdentity); Karpenter exits at start when it can't find it, as it does on AWS, so
here the process waits for the first `pulumi up` instead of crash-looping beside it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from srvmod.local.waiting import crd_established, until


def queue_exists(name: str) -> bool:
    try:
        boto3.client("sqs").get_queue_url(QueueName=name)
    except (ClientError, BotoCoreError):
        return False
    return True


def main() -> None:
    queue, kubeconfig = os.environ["INTERRUPTION_QUEUE"], Path(os.environ["KUBECONFIG"])
    until("Karpenter's CRDs", lambda: crd_established(kubeconfig, "ec2nodeclasses.karpenter.k8s.aws"))
    until(f"queue {queue}", lambda: queue_exists(queue))
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
