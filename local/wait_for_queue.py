"""Runs a command once Karpenter's interruption queue exists in the simulated AWS.

The queue is the program's own (NodeIdentity); Karpenter exits at start when it can't find it, as it does on AWS,
so here the process waits for the first `pulumi up` instead of crash-looping beside it.
"""

from __future__ import annotations

import os
import sys
import time

import boto3
from botocore.exceptions import BotoCoreError, ClientError


def queue_exists(name: str) -> bool:
    try:
        boto3.client("sqs").get_queue_url(QueueName=name)
    except (ClientError, BotoCoreError):
        return False
    return True


def main() -> None:
    name = os.environ["INTERRUPTION_QUEUE"]
    print(f"waiting for queue {name}", flush=True)
    while not queue_exists(name):
        time.sleep(0.5)
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
