"""What survives the end of the process: the same objects with the same ids; and what happens when it can't."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from srvmod.local.aws.journal import Journal, JournalError
from srvmod.local.aws.serve import ServeError, Server

from .conftest import ACCOUNT, admin, clients, start, trust

Client = Callable[[str], Any]
MULTIPART = 6 << 20


def fill(client: Client) -> None:
    """Some of everything that the program makes, with reads in between (they mustn't disturb the ids)."""
    ec2 = client("ec2")
    ec2.describe_vpcs()
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{i}.0/24", AvailabilityZone=f"us-east-1{z}")["Subnet"]["SubnetId"]
        for i, z in enumerate("ab")
    ]
    client("iam").create_role(RoleName="eks", AssumeRolePolicyDocument=trust("eks.amazonaws.com"))
    client("kms").create_key(Description="weights")
    client("sqs").create_queue(QueueName="interruption")
    role = f"arn:aws:iam::{ACCOUNT}:role/eks"
    client("eks").create_cluster(name="c", roleArn=role, resourcesVpcConfig={"subnetIds": subnets})
    pair = {"namespace": "n", "serviceAccount": "s", "roleArn": role}
    client("eks").create_pod_identity_association(clusterName="c", **pair)
    s3 = client("s3")
    s3.create_bucket(Bucket="weights")
    s3.put_object(Bucket="weights", Key="a/b c.bin", Body=bytes(range(256)) * 100)
    upload = s3.create_multipart_upload(Bucket="weights", Key="big")["UploadId"]
    part = s3.upload_part(Bucket="weights", Key="big", UploadId=upload, PartNumber=1, Body=b"x" * MULTIPART)
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3.complete_multipart_upload(Bucket="weights", Key="big", UploadId=upload, MultipartUpload=parts)
    client("secretsmanager").create_secret(Name="keys", SecretString="{}")


def seen(client: Client) -> str:
    """Everything that `fill` made, as the API describes it."""
    objects = client("s3").list_objects_v2(Bucket="weights")["Contents"]
    quota = client("service-quotas").get_service_quota(ServiceCode="ec2", QuotaCode="L-417A185B")["Quota"]
    found = {
        "vpcs": [v for v in client("ec2").describe_vpcs()["Vpcs"] if not v["IsDefault"]],
        "subnets": [s for s in client("ec2").describe_subnets()["Subnets"] if not s["DefaultForAz"]],
        "roles": client("iam").list_roles()["Roles"],
        "keys": client("kms").list_keys()["Keys"],
        "cluster": client("eks").describe_cluster(name="c")["cluster"],
        "identities": client("eks").list_pod_identity_associations(clusterName="c")["associations"],
        "objects": [(o["Key"], o["ETag"], o["Size"]) for o in objects],
        "secret": client("secretsmanager").describe_secret(SecretId="keys")["ARN"],
        "quota": quota["Value"],
    }
    return json.dumps(found, default=str, sort_keys=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "aws.journal"


def run(path: Path, do: Callable[[Server], Any]) -> Any:
    running = start(path)
    try:
        return do(running)
    finally:
        running.stop()


def test_objects_come_back_with_their_ids(path: Path) -> None:
    def first(server: Server) -> str:
        fill(clients(server))
        admin(server, "quotas", {"ec2/L-417A185B": 384})
        return seen(clients(server))

    def second(server: Server) -> tuple[str, dict[str, Any]]:
        return seen(clients(server)), server.front.health()

    before = run(path, first)
    after, health = run(path, second)
    assert after == before
    assert health["replayed"] > 10
    assert health["stateLost"] is None
    assert path.stat().st_mode & 0o077 == 0


def test_changes_go_on_after_a_restart(path: Path) -> None:
    run(path, lambda server: clients(server)("sqs").create_queue(QueueName="one"))
    run(path, lambda server: clients(server)("sqs").create_queue(QueueName="two"))
    urls = run(path, lambda server: clients(server)("sqs").list_queues()["QueueUrls"])
    assert [u.rsplit("/", 1)[1] for u in urls] == ["one", "two"]


def test_a_refused_change_leaves_no_record(path: Path) -> None:
    def do(server: Server) -> None:
        with pytest.raises(ClientError):
            clients(server)("ec2").create_subnet(VpcId="vpc-00000000000000000", CidrBlock="10.0.0.0/24")

    run(path, do)
    assert list(Journal(path).records()) == []


def test_a_torn_record_is_dropped(path: Path) -> None:
    run(path, lambda server: clients(server)("sqs").create_queue(QueueName="one"))
    size = path.stat().st_size
    run(path, lambda server: clients(server)("sqs").create_queue(QueueName="two"))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 20)
    urls = run(path, lambda server: clients(server)("sqs").list_queues()["QueueUrls"])
    assert [u.rsplit("/", 1)[1] for u in urls] == ["one"]
    assert path.stat().st_size == size


def test_damage_in_the_middle_is_named(path: Path) -> None:
    for name in ("one", "two"):
        run(path, lambda server, name=name: clients(server)("sqs").create_queue(QueueName=name))
    data = path.read_bytes().replace(b'{"QueueName": "one"}', b'{"QueueName": "0ne"}')
    path.write_bytes(data)
    with pytest.raises(ServeError, match="damaged: delete the file"):
        start(path)


def test_a_foreign_file_is_named(path: Path) -> None:
    path.write_text("no journal\n")
    with pytest.raises(JournalError, match=f"{path}.*delete the file"):
        list(Journal(path).records())


def test_state_that_cannot_be_replayed_is_said_to_be_lost(path: Path) -> None:
    run(path, lambda server: clients(server)("ec2").create_vpc(CidrBlock="10.0.0.0/16"))
    data = path.read_bytes().replace(b'"status": 200', b'"status": 201')
    path.write_bytes(data)
    assert "ended with 200 instead of 201" in run(path, lambda server: server.front.health()["stateLost"])


def test_a_full_disk_is_an_error_of_the_call(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Journal, record: Any) -> None:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Journal, "append", full)

    def do(server: Server) -> None:
        with pytest.raises(ClientError, match="No space left"):
            clients(server)("sqs").create_queue(QueueName="one")

    run(path, do)
