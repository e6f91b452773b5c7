"""Preflight against a simulated account that has everything, and that lacks one thing at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import pytest

from srvmod.local.aws.world import Endpoint
from srvmod.ops.preflight.account import Account
from srvmod.ops.preflight.answers import Answer, Verdict, exit_code
from srvmod.ops.preflight.checks import reservations, roles
from srvmod.ops.preflight.run import CHECKS
from tests.ops.conftest import BASE, RESERVATION, Simulated, days, needs

Only = Callable[..., Answer]


def test_an_account_that_has_everything_passes(account: Simulated) -> None:
    answers = account.answers()
    assert [answer for answer in answers if answer.verdict is not Verdict.OK] == []
    assert exit_code(answers) == 0
    assert not any(answer.do for answer in answers)


def test_nothing_is_changed(account: Simulated) -> None:
    before = dict(account.server.front.calls)
    account.answers()
    asked = {
        label for (label, agent), count in account.server.front.calls.items() if before.get((label, agent)) != count
    }
    assert asked
    assert all(label.split(":")[1].startswith(("Get", "Describe", "List")) for label in asked), asked


@pytest.mark.parametrize(
    ("vcpus", "said"), [(192 * 6 - 1, "the declared traffic, but no peak"), (191, "0 nodes, not even"), (0, "0 nodes")]
)
def test_a_small_gpu_quota(account: Simulated, only: Only, vcpus: int, said: str) -> None:
    account.quota("L-417A185B", vcpus)
    answer = only("quota of the pool")
    assert answer.verdict is Verdict.WILL_FAIL
    assert said in answer.found
    assert "--desired-value 1152" in answer.do


def test_just_enough_gpu_quota(account: Simulated, only: Only) -> None:
    account.quota("L-417A185B", 192 * 6)
    assert only("quota of the pool").verdict is Verdict.OK


@pytest.mark.parametrize(("owner", "verdict"), [("another", Verdict.WILL_FAIL), ("srvmod-case", Verdict.OK)])
def test_only_other_clusters_use_the_quota_up(account: Simulated, only: Only, owner: str, verdict: Verdict) -> None:
    account.quota("L-417A185B", 192 * 6)
    ec2 = account.client("ec2")
    image = ec2.describe_images(Owners=["602401143452"])["Images"][0]["ImageId"]
    tags = [{"ResourceType": "instance", "Tags": [{"Key": "eks:eks-cluster-name", "Value": owner}]}]
    made = ec2.run_instances(
        ImageId=image,
        MinCount=1,
        MaxCount=1,
        InstanceType="p5.48xlarge",
        TagSpecifications=tags,
    )
    try:
        assert only("quota of the pool").verdict is verdict
    finally:
        ec2.terminate_instances(InstanceIds=[made["Instances"][0]["InstanceId"]])


def test_a_quota_that_was_never_set_is_awss_default(account: Simulated, only: Only) -> None:
    account.fault("service-quotas", "GetServiceQuota", "NoSuchResourceException", status=404)
    assert only("quota of VPCs").verdict is Verdict.OK


@pytest.mark.parametrize(
    ("check", "service", "code", "value", "said"),
    [
        ("quota of system nodes", "ec2", "L-1216C47A", 15, "4 m7i.xlarge"),
        ("quota of Elastic IPs", "ec2", "L-0263D0A3", 2, "3 Elastic IPs"),
        ("quota of VPCs", "vpc", "L-F678F1CE", 1, "1 VPC"),
    ],
)
def test_other_small_quotas(
    account: Simulated, only: Only, *, check: str, service: str, code: str, value: int, said: str
) -> None:
    account.quota(code, value, service)
    answer = only(check)
    assert answer.verdict is Verdict.WILL_FAIL
    assert said in answer.needed
    assert f"--service-code {service}" in answer.do


def test_what_the_program_has_made_already_needs_no_quota(account: Simulated, only: Only) -> None:
    account.quota("L-0263D0A3", 3)
    ec2, made = account.client("ec2"), []
    try:
        for zone in "abc":
            tags = [{"Key": "Name", "Value": f"srvmod-case-nat-us-east-1{zone}"}]
            specification = [{"ResourceType": "elastic-ip", "Tags": tags}]
            made.append(ec2.allocate_address(Domain="vpc", TagSpecifications=specification)["AllocationId"])
        assert only("quota of Elastic IPs").verdict is Verdict.OK
    finally:
        for address in made:
            ec2.release_address(AllocationId=address)


def test_an_existing_vpc_needs_no_quota_but_its_subnets(account: Simulated, only: Only) -> None:
    subnets = account.client("ec2").describe_subnets()["Subnets"]
    by_zone = {subnet["AvailabilityZone"]: subnet for subnet in subnets}
    chosen = [by_zone[zone] for zone in ("us-east-1a", "us-east-1b", "us-east-1c")]
    ids, vpc = [subnet["SubnetId"] for subnet in chosen], chosen[0]["VpcId"]
    given = {"network__existingVpcId": vpc, "network__existingSubnetIds": ids, "network__natGateways": 0}
    answer = only("subnets", **given)
    assert "gives public addresses" in answer.found
    for subnet in ids:
        account.client("ec2").modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": False})
    assert only("subnets", **given).verdict is Verdict.OK
    turned = only("subnets", **{**given, "network__existingSubnetIds": [ids[1], ids[0], ids[2]]})
    assert f"{ids[1]} is in us-east-1b, not us-east-1a" in turned.found
    gone = only("subnets", **{**given, "network__existingSubnetIds": [*ids[:2], "subnet-0123456789abcdef0"]})
    assert "subnet-0123456789abcdef0 isn't in" in gone.found
    assert list(CHECKS["quota of VPCs"](needs(**given), account.aws)) == []


def test_a_zone_that_the_region_has_not(only: Only) -> None:
    answer = only("region", network__zones=["us-east-1a", "us-east-1b", "us-east-1z"])
    assert answer.verdict is Verdict.WILL_FAIL
    assert "us-east-1z: not there" in answer.found


def test_zones_without_the_instance_type(account: Simulated, only: Only) -> None:
    from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

    table = INSTANCE_TYPE_OFFERINGS["availability-zone"]
    before = table["us-east-1"]
    try:
        table["us-east-1"] = [
            offer for offer in before if (offer["InstanceType"], offer["Location"]) != ("p5.48xlarge", "us-east-1b")
        ]
        answer = only("instance type")
        assert answer.verdict is Verdict.WILL_FAIL
        assert answer.do == "take us-east-1b out of srvmod:pool.zones"
        table["us-east-1"] = [offer for offer in before if offer["InstanceType"] != "p5.48xlarge"]
        assert "choose another region" in only("instance type").do
    finally:
        table["us-east-1"] = before


@pytest.mark.parametrize(
    ("values", "changes", "verdict", "said"),
    [
        ({"State": "cancelled"}, {}, Verdict.WILL_FAIL, "make a new one"),
        ({"InstanceType": "p5e.48xlarge"}, {}, Verdict.WILL_FAIL, "another instance type"),
        ({"AvailabilityZone": "us-east-1b"}, {}, Verdict.WILL_FAIL, "set its zone to us-east-1b"),
        ({"ReservationType": "capacity-block"}, {}, Verdict.WILL_FAIL, "set its kind"),
        ({"EndDate": days(-1)}, {}, Verdict.WILL_FAIL, "it is over"),
        ({"EndDate": days(2)}, {}, Verdict.CANT_TELL, "it ends soon"),
        ({"EndDate": days(30)}, {}, Verdict.OK, ""),
        ({"State": "scheduled", "StartDate": days(3)}, {}, Verdict.CANT_TELL, "it starts"),
        (
            {"ReservationType": "capacity-block", "EndDate": days(20)},
            {"kind": "block"},
            Verdict.OK,
            "",
        ),
    ],
)  # fmt: skip
def test_reservations(
    account: Simulated, only: Only, *, values: dict[str, Any], changes: dict[str, Any], verdict: Verdict, said: str
) -> None:
    account.reserve(**values)
    wanted = {"id": RESERVATION, "zone": "us-east-1a", "kind": "onDemand", **changes}
    answer = only("reservations", pool__reservations=[wanted])
    assert answer.verdict is verdict, answer
    assert said in answer.do


def test_a_reservation_that_is_not_there(only: Only) -> None:
    wanted = {"id": "cr-00000000000000000", "zone": "us-east-1a", "kind": "onDemand"}
    answer = only("reservations", pool__reservations=[wanted])
    assert answer.verdict is Verdict.WILL_FAIL


def test_reservations_by_tag(account: Simulated, only: Only) -> None:
    account.reserve(Tags=[{"Key": "purpose", "Value": "llm"}])
    wanted = {"tags": {"purpose": "llm"}, "kind": "onDemand"}
    assert only("reservations", pool__reservations=[wanted]).verdict is Verdict.OK
    assert only("reservations", pool__reservations=[{**wanted, "tags": {"purpose": "*"}}]).verdict is Verdict.OK
    for tags in ({"purpose": "other"}, {"purpose": "llm", "team": "x"}, {"reason": "*"}):
        assert only("reservations", pool__reservations=[{**wanted, "tags": tags}]).verdict is Verdict.WILL_FAIL
    elsewhere = only("reservations", pool__reservations=[wanted], pool__zones=["us-east-1b"])
    assert "add us-east-1a to srvmod:pool.zones" in elsewhere.do


def test_a_block_by_tag_that_is_over_is_none(account: Simulated, only: Only) -> None:
    tagged = [{"Key": "purpose", "Value": "llm"}]
    account.reserve(Tags=tagged, ReservationType="capacity-block", State="expired", EndDate=days(-1))
    wanted = {"tags": {"purpose": "llm"}, "kind": "block"}
    assert "not in this account" in only("reservations", pool__reservations=[wanted]).found
    account.reserve(Tags=tagged, ReservationType="capacity-block", EndDate=days(20))
    assert only("reservations", pool__reservations=[wanted]).verdict is Verdict.OK


def test_a_reservation_that_two_entries_select_counts_once(account: Simulated) -> None:
    account.reserve(InstanceCount=3, Tags=[{"Key": "purpose", "Value": "llm"}])
    both = [
        {"id": RESERVATION, "zone": "us-east-1a", "kind": "onDemand"},
        {"tags": {"purpose": "llm"}, "kind": "onDemand"},
    ]
    asked = needs(pool__reservations=both, pool__capacityTypes=["reserved"])
    answers = {answer.subject: answer for answer in reservations.reservations(asked, account.aws)}
    assert answers["reserved capacity"].found == "3 reserved instances"


@pytest.mark.parametrize(("count", "verdict"), [(3, Verdict.WILL_FAIL), (4, Verdict.OK)])
def test_reserved_only_needs_the_whole_plan(account: Simulated, only: Only, count: int, verdict: Verdict) -> None:
    account.reserve(InstanceCount=count)
    assert only("reservations", pool__capacityTypes=["reserved"]).verdict is verdict


def test_an_ami_release_that_does_not_exist(only: Only) -> None:
    answer = only("AMI", pool__amiAlias="al2023@v20200101")
    assert answer.verdict is Verdict.WILL_FAIL
    assert "amazon-eks-node-al2023-x86_64-nvidia-1.36-v20200101/image_id" in answer.found


@pytest.mark.parametrize(
    ("end", "verdict", "said"),
    [
        (days(-1), Verdict.WILL_FAIL, "extended support"),
        (days(20), Verdict.CANT_TELL, "standard support until"),
        (days(200), Verdict.OK, "standard support until"),
    ],
)
def test_kubernetes_versions_grow_old(account: Simulated, only: Only, end: Any, verdict: Verdict, said: str) -> None:
    from dataclasses import replace

    account.world.versions = tuple(replace(v, end_of_standard=end.date()) for v in account.world.versions)
    answer = only("Kubernetes version")
    assert answer.verdict is verdict
    assert said in answer.found


def test_a_kubernetes_version_that_eks_has_not(only: Only) -> None:
    assert only("Kubernetes version", cluster__kubernetesVersion="1.99").verdict is Verdict.WILL_FAIL


def test_an_addon_version_that_eks_has_not(account: Simulated, only: Only) -> None:
    account.world.addons["vpc-cni"] = ("v1.30.0-eksbuild.1",)
    answer = only("add-ons")
    assert (answer.verdict, answer.found) == (Verdict.WILL_FAIL, "v1.30.0-eksbuild.1")


@pytest.mark.parametrize(
    ("name", "body", "verdict", "said"),
    [
        ("config.json", None, Verdict.WILL_FAIL, "of 2 files 1 missing (config.json)"),
        ("config.json", b"longer than it was", Verdict.WILL_FAIL, "1 of another size (config.json)"),
        ("manifest.json", None, Verdict.WILL_FAIL, "engines would wait for ever"),
        ("manifest.json", b"{", Verdict.WILL_FAIL, "isn't a manifest"),
        ("manifest.json", b'{"files": []}', Verdict.WILL_FAIL, "lists no files"),
        ("manifest.json", b'{"files": [{"path": "a"}]}', Verdict.WILL_FAIL, "isn't a manifest (KeyError"),
    ],
)
def test_weights_that_are_not_whole(
    account: Simulated, only: Only, *, name: str, body: bytes | None, verdict: Verdict, said: str
) -> None:
    s3, where = account.client("s3"), {"Bucket": "srvmod-case-weights", "Key": f"{BASE}/{name}"}
    before = s3.get_object(**where)["Body"].read()
    try:
        if body is None:
            s3.delete_object(**where)
        else:
            s3.put_object(**where, Body=body)
        answer = only("weights")
        assert answer.verdict is verdict
        assert said in answer.found
        assert "aws s3 sync" in answer.do
    finally:
        s3.put_object(**where, Body=before)


def test_a_manifest_that_lists_no_draft_model(only: Only) -> None:
    """The stack drafts, the revision was uploaded without the draft model."""
    required = ["config.json", "*.safetensors", "draft/config.json", "draft/*.safetensors"]
    answer = only("weights", weights__required=required)
    assert answer.verdict is Verdict.WILL_FAIL
    assert "manifest.json doesn't list draft/config.json, draft/*.safetensors, which engines need" in answer.found
    assert "put draft/config.json, draft/*.safetensors into DIR" in answer.do
    assert f"manifest DIR --required '{' '.join(required)}'" in answer.do


def test_everything_wrong_with_weights_is_one_answer(account: Simulated, only: Only) -> None:
    s3, where = account.client("s3"), {"Bucket": "srvmod-case-weights", "Key": f"{BASE}/manifest.json"}
    before = s3.get_object(**where)["Body"].read()
    try:
        s3.put_object(**where, Body=b'{"files": [{"path": "config.json", "sizeBytes": 3}]}')
        found = only("weights").found
        assert "doesn't list *.safetensors" in found
        assert "of 1 file 1 of another size (config.json)" in found
    finally:
        s3.put_object(**where, Body=before)


def test_a_bucket_that_the_program_has_still_to_make(only: Only) -> None:
    answer = only("weights", weights__bucket="srvmod-not-there")
    assert answer.verdict is Verdict.CANT_TELL
    assert "the first `pulumi up` makes it" in answer.found


def test_keys(account: Simulated, only: Only) -> None:
    kms = account.client("kms")
    key = kms.describe_key(KeyId="alias/srvmod-case-weights")["KeyMetadata"]["KeyId"]
    kms.disable_key_rotation(KeyId=key)
    assert "not rotated" in only("KMS keys").found
    kms.schedule_key_deletion(KeyId=key)
    answer = only("KMS keys")
    assert answer.verdict is Verdict.WILL_FAIL
    assert "cancel-key-deletion" in answer.do
    kms.cancel_key_deletion(KeyId=key)
    assert "Disabled" in only("KMS keys").found
    kms.enable_key(KeyId=key)
    kms.enable_key_rotation(KeyId=key)
    assert only("KMS keys").verdict is Verdict.OK
    assert "the program makes it" in only("KMS keys", keyAliases=["alias/new"]).found


def test_a_service_linked_role_that_is_not_there_yet(only: Only) -> None:
    answer = only("service-linked roles", serviceLinkedRoles=["autoscaling.amazonaws.com"])
    assert answer.verdict is Verdict.CANT_TELL
    assert answer.do == "aws iam create-service-linked-role --aws-service-name autoscaling.amazonaws.com"


@pytest.mark.parametrize(
    ("arn", "verdict", "said"),
    [
        ("arn:aws:iam::123456789012:role/eks", Verdict.OK, "role/eks"),
        ("arn:aws:iam::123456789012:role/platform/eks", Verdict.WILL_FAIL, "role/eks"),
        ("arn:aws:iam::123456789012:role/nobody", Verdict.WILL_FAIL, "not there"),
        ("arn:aws:iam::123456789012:user/nobody", Verdict.WILL_FAIL, "not there"),
        ("arn:aws:iam::999999999999:role/eks", Verdict.CANT_TELL, "in account 999999999999"),
    ],
)
def test_admins_that_eks_would_refuse(only: Only, arn: str, verdict: Verdict, said: str) -> None:
    answer = only("admins", admins=[arn])
    assert answer.verdict is verdict
    assert said in answer.found


def test_plan_roles_that_eks_would_refuse(only: Only) -> None:
    answer = only("admins", admins=[], planRoles=["arn:aws:iam::123456789012:role/nobody"])
    assert answer.verdict is Verdict.WILL_FAIL
    assert "srvmod:cluster.planRoles" in answer.do


@pytest.mark.parametrize(
    ("caller", "verdict", "said"),
    [
        ("arn:aws:sts::123456789012:assumed-role/deployer/session", Verdict.OK, "may deploy"),
        ("arn:aws:iam::123456789012:user/ops/ana", Verdict.OK, "may deploy"),
        ("arn:aws:sts::123456789012:assumed-role/plan/session", Verdict.OK, "may plan, and not deploy"),
        ("arn:aws:sts::123456789012:assumed-role/viewer/deployer", Verdict.CANT_TELL, "isn't one of those"),
        ("arn:aws:sts::999999999999:assumed-role/deployer/session", Verdict.CANT_TELL, "isn't one of those"),
        ("arn:aws:iam::123456789012:user/deployer", Verdict.CANT_TELL, "isn't one of those"),
        ("arn:aws:iam::123456789012:root", Verdict.CANT_TELL, "isn't one of those"),
    ],
)
def test_whether_the_caller_is_let_in(caller: str, verdict: Verdict, said: str) -> None:
    class Caller:
        def ask(self, service: str, operation: str) -> dict[str, str]:
            assert (service, operation) == ("sts", "get_caller_identity")
            return {"Arn": caller}

    place = "arn:aws:iam::123456789012:"
    allowed = needs(deployers=[f"{place}role/ci/deployer", f"{place}user/ops/ana"], planRoles=[f"{place}role/plan"])
    (answer,) = roles.access(allowed, cast(Account, Caller()))
    assert answer.verdict is verdict
    assert said in answer.found


def test_the_secret_of_api_keys(account: Simulated, only: Only) -> None:
    answer = only("API keys", apiKeysSecret="none")
    assert answer.verdict is Verdict.WILL_FAIL
    assert '"web": "KEY"' in answer.do
    account.client("secretsmanager").delete_secret(SecretId="srvmod-case/api-keys", RecoveryWindowInDays=7)
    assert "restore-secret" in only("API keys").do
    account.client("secretsmanager").restore_secret(SecretId="srvmod-case/api-keys")


def test_a_certificate(account: Simulated, only: Only) -> None:
    made = account.client("acm").request_certificate(DomainName="inference.example.com", ValidationMethod="DNS")
    assert "ISSUED" not in only("certificate", certificateArn=made["CertificateArn"]).found
    other = made["CertificateArn"][:-4] + "0000"
    assert "not there" in only("certificate", certificateArn=other).found


def test_an_api_that_can_not_be_reached_from_here(account: Simulated, only: Only) -> None:
    before = account.world.endpoint
    try:
        account.world.endpoint = Endpoint("https://127.0.0.1:1", "UEVN")
        answer = only("Kubernetes API")
        assert answer.verdict is Verdict.CANT_TELL
        assert "in the VPC" in answer.do
        assert "endpointPrivateAccessCidrs" in answer.do
        assert "endpointPublicAccessCidrs" in only("Kubernetes API", cluster__publicEndpoint=True).do
    finally:
        account.world.endpoint = before
    assert "no cluster other yet" in only("Kubernetes API", cluster__name="other").found
