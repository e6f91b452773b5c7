"""What a person or another team would have put into the account beforehand: the API keys' secret and the weights."""

from __future__ import annotations

import json
import secrets
import threading
import time
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from srvmod.local import facts
from srvmod.local.paths import State

API_KEYS_SECRET = f"{facts.CLUSTER_NAME}/api-keys"


def client(service: str, found: facts.Facts) -> Any:
    """boto3 client of the simulated AWS; never of a real account."""
    return boto3.client(
        service,
        endpoint_url=found.aws_url,
        region_name=facts.REGION,
        aws_access_key_id="srvmod-local",
        aws_secret_access_key="srvmod-local",
        config=Config(retries={"max_attempts": 2}, connect_timeout=3, read_timeout=30),
    )


def aws(found: facts.Facts) -> None:
    """A random API key in Secrets Manager, once."""
    manager = client("secretsmanager", found)
    try:
        manager.create_secret(
            Name=API_KEYS_SECRET, SecretString=json.dumps({"local": f"sk-local-{secrets.token_urlsafe(24)}"})
        )
    except manager.exceptions.ResourceExistsException:
        return


def api_key(found: facts.Facts) -> str:
    return json.loads(client("secretsmanager", found).get_secret_value(SecretId=API_KEYS_SECRET)["SecretString"])[
        "local"
    ]


def weights_when_bucket_exists(
    found: facts.Facts, state: State, stop: threading.Event, progress: Callable[[str, str], None]
) -> None:
    """Upload tiny weights as soon as the program has made its bucket (while `pulumi up` goes on)."""
    from srvmod.local.engine.tiny_weights import upload, write_tiny_weights

    from srvmod.infra.settings import load_stack_file
    from srvmod.local.paths import REPO

    settings = load_stack_file(REPO / "Pulumi.local.yaml")
    folder = state.cache / "tiny-weights" / settings.model.revision
    write_tiny_weights(folder, settings.model.revision)
    s3 = client("s3", found)
    while not stop.is_set():
        try:
            buckets = [b["Name"] for b in s3.list_buckets()["Buckets"] if "weights" in b["Name"]]
        except (ClientError, BotoCoreError):
            buckets = []
        if buckets:
            upload(s3, buckets[0], settings.model.weights_prefix, folder)
            progress("weights", f"tiny weights uploaded to s3://{buckets[0]}/{settings.model.weights_prefix}")
            return
        time.sleep(0.3)
