"""What a person or another team would have put into the account beforehand: the API keys' secret and the weights."""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from typing import Any

import boto3
from botocore.config import Config

from srvmod.local import facts
from srvmod.local.errors import LocalError
from srvmod.local.paths import REPO, State

UPLOAD_SECONDS = 60.0
API_KEYS_SECRET = f"{facts.CLUSTER_NAME}/api-keys"


def client(service: str, found: facts.Facts) -> Any:
    """boto3 client of the simulated AWS; never of a real account."""
    return boto3.client(
        service,
        endpoint_url=found.aws_url,
        region_name=facts.REGION,
        aws_access_key_id=facts.AWS_KEY,
        aws_secret_access_key=facts.AWS_KEY,
        config=Config(retries={"max_attempts": 2}, connect_timeout=3, read_timeout=30, proxies={}),
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


class WeightsSeeder(threading.Thread):
    """Uploads tiny weights as soon as the program has made its bucket, while `pulumi up` goes on."""

    def __init__(self, found: facts.Facts, state: State, progress: Callable[[str, str], None]) -> None:
        super().__init__(name="weights-seeder", daemon=True)
        self.found, self.state, self.progress = found, state, progress
        self.over, self.error = threading.Event(), ""

    def run(self) -> None:
        try:
            self._seed()
        except Exception as error:  # told by `finish`: engines would wait for weights that nobody uploads
            self.error = f"{type(error).__name__}: {error}"

    def finish(self) -> None:
        """Wait for the upload. Raises LocalError when it failed."""
        self.over.set()
        self.join(UPLOAD_SECONDS)
        if self.is_alive():
            self.error = f"not finished after {UPLOAD_SECONDS:.0f} s"
        if self.error:
            raise LocalError(f"tiny weights weren't uploaded: {self.error}", "run `srvmod local up` again")

    def _seed(self) -> None:
        from srvmod.infra.settings import load_stack_file
        from srvmod.local.engine.tiny_weights import upload, write_tiny_weights

        model = load_stack_file(REPO / "Pulumi.local.yaml").model
        folder = self.state.cache / "tiny-weights" / model.revision
        write_tiny_weights(folder, model.revision)
        s3 = client("s3", self.found)
        while True:
            last_look = self.over.is_set()
            buckets = [b["Name"] for b in s3.list_buckets()["Buckets"] if "weights" in b["Name"]]
            if buckets:
                manifest = f"{model.weights_prefix}/{model.revision}/manifest.json"
                if not s3.list_objects_v2(Bucket=buckets[0], Prefix=manifest).get("KeyCount"):
                    upload(s3, buckets[0], model.weights_prefix, folder)
                    self.progress("weights", f"tiny weights uploaded to s3://{buckets[0]}/{model.weights_prefix}")
                return
            if last_look:
                raise LocalError("the program made no bucket for weights", "see `pulumi up`'s output")
            self.over.wait(0.3)
