"""A simulated account in this process, and the needs of an environment that fits it."""

from __future__ import annotations

import copy
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from moto.core.base_backend import BackendDict

from srvmod.contract.account_needs import AccountNeeds
from srvmod.local.aws import capacity, images
from srvmod.local.aws.context import Context
from srvmod.local.aws.serve import Server, serve
from srvmod.local.aws.world import Endpoint, Fault
from srvmod.ops.preflight.account import Account
from srvmod.ops.preflight.answers import Answer
from srvmod.ops.preflight.run import CHECKS, run

ACCOUNT, REGION = "123456789012", "us-east-1"
ZONES = ["us-east-1a", "us-east-1b", "us-east-1c"]
FILES = {"config.json": b"{}", "model-00001-of-00001.safetensors": b"0123456789"}
BASE = "models/m/r1"
RESERVATION = "cr-0123456789abcdef0"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "AKIATEST",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}

NEEDS = AccountNeeds.model_validate(
    {
        "environment": "case",
        "settingsDigest": "",
        "accountId": ACCOUNT,
        "region": REGION,
        "simulated": False,
        "cluster": {
            "name": "srvmod-case",
            "kubernetesVersion": "1.36",
            "publicEndpoint": False,
            "addons": {"vpc-cni": "v1.22.4-eksbuild.3"},
            "systemInstanceType": "m7i.xlarge",
            "systemNodes": 4,
        },
        "network": {
            "zones": ZONES,
            "vpcName": "srvmod-case-vpc",
            "natGateways": 3,
            "natNamePrefix": "srvmod-case-nat-",
            "interfaceEndpoints": 11,
        },
        "pool": {
            "instanceType": "p5.48xlarge",
            "vcpus": 192,
            "quotaCode": "L-417A185B",
            "zones": ZONES,
            "minNodes": 4,
            "maxNodes": 6,
            "capacityTypes": ["reserved", "on-demand"],
            "amiAlias": "al2023@v20260714",
            "reservations": [{"id": RESERVATION, "zone": "us-east-1a", "kind": "onDemand"}],
        },
        "weights": {
            "bucket": "srvmod-case-weights",
            "prefix": "models/m",
            "revision": "r1",
            "required": ["config.json", "*.safetensors"],
        },
        "admins": [f"arn:aws:iam::{ACCOUNT}:role/eks"],
        "deployers": [f"arn:aws:iam::{ACCOUNT}:user/moto"],
        "keyAliases": ["alias/srvmod-case-weights"],
        "serviceLinkedRoles": ["eks.amazonaws.com"],
        "apiKeysSecret": "srvmod-case/api-keys",
        "apiClients": ["web"],
        "certificateArn": None,
    }
)


def needs(**changes: Any) -> AccountNeeds:
    """The needs with values changed at dotted paths of the JSON form, written with __ for the dot."""
    document = NEEDS.model_dump(mode="json", by_alias=True)
    for path, value in changes.items():
        *above, last = path.split("__")
        target = document
        for part in above:
            target = target[part]
        target[last] = value
    return AccountNeeds.model_validate(document)


@dataclass
class Simulated:
    """The account, with what it holds; `clean` brings back what a test changed in its facts."""

    server: Server
    aws: Account
    clients: dict[str, Any] = field(default_factory=dict[str, Any])

    def client(self, service: str) -> Any:
        """A boto3 client that may write."""
        if service not in self.clients:
            self.clients[service] = boto3.client(service, region_name=REGION)
        return self.clients[service]

    @property
    def world(self) -> Any:
        """Facts that a test may set."""
        return self.server.front.world

    @property
    def context(self) -> Context:
        """The region's view of them."""
        return Context(self.world, REGION)

    def quota(self, code: str, value: float, service: str = "ec2") -> None:
        """Set a quota."""
        label, _, unit = self.world.quotas[service, code]
        self.world.quotas[service, code] = (label, value, unit)

    def reserve(self, **values: Any) -> None:
        """Exactly one reservation."""
        capacity.reservations(self.context).clear()
        given = {
            "CapacityReservationId": RESERVATION,
            "InstanceType": "p5.48xlarge",
            "AvailabilityZone": "us-east-1a",
            "InstanceCount": 4,
        }
        made = capacity.make(self.context, {**given, **{k: v for k, v in values.items() if k in given}})
        made.update({k: v for k, v in values.items() if k not in given})

    def fault(self, service: str, operation: str, code: str, message: str = "no", status: int = 400) -> None:
        """An error instead of the next answers."""
        self.world.faults.append(Fault(service, operation, code, message, status))

    def answers(self, **changes: Any) -> list[Answer]:
        """What preflight says, with needs changed."""
        return list(run(needs(**changes), self.aws))


def _fill(account: Simulated) -> None:
    """Everything that the needs ask for."""
    account.client("s3").create_bucket(Bucket="srvmod-case-weights")
    entries = [
        {"path": name, "sizeBytes": len(body), "sha256": hashlib.sha256(body).hexdigest()}
        for name, body in FILES.items()
    ]
    manifest = json.dumps({"schema": 1, "revision": "r1", "files": entries}).encode()
    for name, body in {**FILES, "manifest.json": manifest}.items():
        account.client("s3").put_object(Bucket="srvmod-case-weights", Key=f"{BASE}/{name}", Body=body)
    account.client("iam").create_service_linked_role(AWSServiceName="eks.amazonaws.com")
    key = account.client("kms").create_key()["KeyMetadata"]["KeyId"]
    account.client("kms").enable_key_rotation(KeyId=key)
    account.client("kms").create_alias(AliasName="alias/srvmod-case-weights", TargetKeyId=key)
    account.client("secretsmanager").create_secret(Name="srvmod-case/api-keys", SecretString='{"web": "k"}')
    trust = {
        "Statement": [{"Effect": "Allow", "Principal": {"Service": "eks.amazonaws.com"}, "Action": "sts:AssumeRole"}]
    }
    role = account.client("iam").create_role(RoleName="eks", AssumeRolePolicyDocument=json.dumps(trust))
    subnets = account.client("ec2").describe_subnets()["Subnets"]
    account.client("eks").create_cluster(
        name="srvmod-case",
        roleArn=role["Role"]["Arn"],
        resourcesVpcConfig={"subnetIds": [subnet["SubnetId"] for subnet in subnets[:2]]},
    )
    account.reserve()


@pytest.fixture(scope="session")
def whole() -> Iterator[Simulated]:
    """An account that has everything; its cluster's API is the server itself, which takes connections."""
    before = dict(os.environ)
    os.environ.update(CREDENTIALS)
    BackendDict.reset()
    server = serve(account=ACCOUNT).start()
    os.environ["AWS_ENDPOINT_URL"] = server.url
    account = Simulated(server, Account(REGION, boto3.Session(), attempts=1))
    account.world.endpoint = Endpoint(server.url, "UEVN")
    _fill(account)
    yield account
    server.stop()
    os.environ.clear()
    os.environ.update(before)


@pytest.fixture
def account(whole: Simulated) -> Iterator[Simulated]:
    """The account; its facts are as they were afterwards. A test puts back what it changes in its objects."""
    world = whole.world
    facts = {name: copy.deepcopy(getattr(world, name)) for name in ("quotas", "versions", "addons", "images", "faults")}
    yield whole
    for name, value in facts.items():
        setattr(world, name, value)
    images.publish(whole.context)
    whole.reserve()


@pytest.fixture
def only(account: Simulated) -> Callable[..., Answer]:
    """The last answer of one check, needs changed."""
    return lambda check, **changes: list(CHECKS[check](needs(**changes), account.aws))[-1]


def days(count: float) -> datetime:
    """A point in time, from now."""
    return datetime.now(UTC) + timedelta(days=count)
