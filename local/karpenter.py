"""Starts Karpenter once its CRDs, its interruption queue and the program's first node class exist.

The queue is the program's own (NodeIdentity); Karpenter exits at start when it can't find it, as it does on AWS, so
here the process waits for the first `pulumi up` instead of crash-looping beside it. Its build with simulated writes
also reads subnets only once, at its start; the node class comes after them.
"""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

from srvmod.local.api import Api, ApiError
from srvmod.local.waiting import crd_established, until

NODE_CLASSES = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses"
TIMEOUT_SECONDS = 10.0


def queue_exists(name: str) -> bool:
    """Whether the simulated AWS has the queue. Asked without an SDK, which would take longer to load than the whole
    wait; the simulation reads the service out of the credential's scope and checks no signature."""
    scope = f"{os.environ['AWS_ACCESS_KEY_ID']}/20260101/{os.environ['AWS_REGION']}/sqs/aws4_request"
    question = urllib.request.Request(
        os.environ["AWS_ENDPOINT_URL"],
        json.dumps({"QueueName": name}).encode(),
        {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": "AmazonSQS.GetQueueUrl",
            "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature=none",
        },
    )
    try:
        with urllib.request.urlopen(question, timeout=TIMEOUT_SECONDS) as answer:
            return "QueueUrl" in json.load(answer)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def any_node_class(api: Api) -> bool:
    try:
        return bool((api.get_or_none(NODE_CLASSES) or {}).get("items"))
    except ApiError:
        return False


def main() -> None:
    queue, api = os.environ["INTERRUPTION_QUEUE"], Api(Path(os.environ["KUBECONFIG"]))
    until("Karpenter's CRDs", lambda: crd_established(api, "ec2nodeclasses.karpenter.k8s.aws"))
    until(f"queue {queue}", lambda: queue_exists(queue))
    until("an EC2NodeClass", lambda: any_node_class(api))
    os.execv(sys.argv[1], sys.argv[1:])


if __name__ == "__main__":
    main()
