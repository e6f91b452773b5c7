"""The simulated AWS over HTTP: additions to moto, settable facts, errors."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from srvmod.local.aws.serve import Server

from .conftest import admin, clients, start, trust

Client = Callable[[str], Any]
NVIDIA = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/nvidia"


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return str(error.value.response["Error"]["Code"])


def test_it_says_that_it_is_a_simulation(server: Server) -> None:
    with urllib.request.urlopen(f"{server.url}/_srvmod/health") as answer:
        health = json.load(answer)
        assert answer.headers["x-srvmod-simulated"] == "true"
    assert "nothing here is AWS" in health["simulation"]
    assert health["stateLost"] is None


def test_managed_policies_are_attached_and_others_refused(client: Client) -> None:
    iam, aws = client("iam"), "arn:aws:iam::aws:policy"
    iam.create_role(RoleName="managed", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
    iam.attach_role_policy(RoleName="managed", PolicyArn=f"{aws}/AmazonEKSWorkerNodePolicy")
    with pytest.raises(ClientError) as error:
        iam.attach_role_policy(RoleName="managed", PolicyArn=f"{aws}/AmazonNothing")
    assert code(error) == "NoSuchEntity"
    attached = iam.list_attached_role_policies(RoleName="managed")["AttachedPolicies"]
    assert [policy["PolicyName"] for policy in attached] == ["AmazonEKSWorkerNodePolicy"]


def test_an_eks_ami_alias_resolves_as_karpenter_does_it(client: Client) -> None:
    name = f"{NVIDIA}/amazon-eks-node-al2023-x86_64-nvidia-1.36-v20260714/image_id"
    image = client("ssm").get_parameter(Name=name)["Parameter"]["Value"]
    assert client("ssm").get_parameter(Name=f"{NVIDIA}/recommended/image_id")["Parameter"]["Value"] == image
    found = client("ec2").describe_images(Filters=[{"Name": "image-id", "Values": [image]}])["Images"]
    assert [(i["Architecture"], i["CreationDate"]) for i in found] == [("x86_64", "2026-07-14T00:00:00.000Z")]
    with pytest.raises(ClientError) as error:
        client("ssm").get_parameter(Name=f"{NVIDIA}/amazon-eks-node-al2023-x86_64-nvidia-1.36-v20991231/image_id")
    assert code(error) == "ParameterNotFound"


def test_only_the_instance_types_in_use_are_offered(client: Client) -> None:
    types = client("ec2").describe_instance_types(InstanceTypes=["p5.48xlarge"])["InstanceTypes"]
    assert types[0]["GpuInfo"]["Gpus"][0]["Count"] == 8
    count = sum(len(p["InstanceTypes"]) for p in client("ec2").get_paginator("describe_instance_types").paginate())
    assert 20 < count < 200


def test_prices_are_those_that_are_known(client: Client) -> None:
    filters = [{"Type": "TERM_MATCH", "Field": "regionCode", "Value": "us-east-1"},
               {"Type": "TERM_MATCH", "Field": "tenancy", "Value": "Shared"}]  # fmt: skip
    found = [
        json.loads(p) for p in client("pricing").get_products(ServiceCode="AmazonEC2", Filters=filters)["PriceList"]
    ]
    dimensions = [d for t in found[0]["terms"]["OnDemand"].values() for d in t["priceDimensions"].values()]
    assert [p["product"]["attributes"]["instanceType"] for p in found] == ["p5.48xlarge"]
    assert float(dimensions[0]["pricePerUnit"]["USD"]) == 55.04
    assert "2026-11-09" in dimensions[0]["description"]
    dedicated = [*filters[:1], {"Type": "TERM_MATCH", "Field": "tenancy", "Value": "Dedicated"}]
    metal = client("pricing").get_products(ServiceCode="AmazonEC2", Filters=dedicated)["PriceList"]
    assert [json.loads(p)["product"]["attributes"]["instanceType"] for p in metal] == ["m7i.metal-24xl"]


@pytest.mark.parametrize(
    ("service", "call", "args"),
    [
        ("ec2", "describe_capacity_block_offerings", {"CapacityDurationHours": 24}),
        ("eks", "list_insights", {"clusterName": "c"}),
        ("bedrock", "list_guardrails", {}),
    ],
)
def test_an_unknown_operation_is_an_error_that_names_it(
    client: Client, server: Server, service: str, call: str, args: dict[str, Any]
) -> None:
    with pytest.raises(ClientError) as error:
        getattr(client(service), call)(**args)
    assert code(error) == "NotImplemented"
    assert f"{service}:{call.title().replace('_', '')}" in str(error.value)
    assert f"{service}:{call.title().replace('_', '')}" in server.front.health()["notSimulated"]


def test_errors_of_moto_come_through_unchanged(client: Client) -> None:
    with pytest.raises(ClientError) as error:
        client("ec2").describe_vpcs(VpcIds=["vpc-0123456789abcdef0"])
    assert code(error) == "InvalidVpcID.NotFound"
    with pytest.raises(ClientError) as error:
        client("s3").get_object(Bucket="nobody", Key="x")
    assert code(error) == "NoSuchBucket"


@pytest.fixture
def own_server() -> Iterator[Server]:
    running = start()
    yield running
    running.stop()


def test_quotas_can_be_set(own_server: Server) -> None:
    quotas = clients(own_server)("service-quotas")
    where = {"ServiceCode": "ec2", "QuotaCode": "L-417A185B"}
    assert quotas.get_service_quota(**where)["Quota"]["Value"] > 192
    assert admin(own_server, "quotas", {"ec2/L-417A185B": 0})[0] == 200
    assert quotas.get_service_quota(**where)["Quota"]["Value"] == 0
    with pytest.raises(ClientError) as error:
        quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-00000000")
    assert code(error) == "NoSuchResourceException"
    status, answer = admin(own_server, "quotas", {"L-417A185B": 0})
    assert (status, "SERVICE/CODE" in answer["message"]) == (400, True)


def test_reservations_are_found_as_karpenter_looks_for_them(own_server: Server) -> None:
    ec2 = clients(own_server)("ec2")
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "purpose", "Value": "llm"}]}]
    made = ec2.create_capacity_reservation(
        InstanceType="p5.48xlarge", InstancePlatform="Linux/UNIX", AvailabilityZone="us-east-1a", InstanceCount=2,
        TagSpecifications=tags,
    )["CapacityReservation"]  # fmt: skip
    block = {"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-east-1b", "InstanceCount": 1,
             "ReservationType": "capacity-block", "EndDateType": "limited", "EndDate": "2026-12-24T00:00:00Z",
             "CapacityReservationId": "cr-0123456789abcdef0"}  # fmt: skip
    found = ec2.describe_capacity_reservations(
        CapacityReservationIds=[made["CapacityReservationId"]], Filters=[{"Name": "state", "Values": ["active"]}]
    )["CapacityReservations"]
    assert [(r["TotalInstanceCount"], r["AvailableInstanceCount"]) for r in found] == [(2, 2)]
    by_tag = ec2.describe_capacity_reservations(Filters=[{"Name": "tag:purpose", "Values": ["llm"]}])
    assert len(by_tag["CapacityReservations"]) == 1
    assert admin(own_server, "reservations", {"reservations": [block]})[0] == 200
    only = ec2.describe_capacity_reservations()["CapacityReservations"]
    assert [(r["CapacityReservationId"], r["ReservationType"]) for r in only] == [
        ("cr-0123456789abcdef0", "capacity-block")
    ]
    assert only[0]["EndDate"].isoformat().startswith("2026-12-24")
    with pytest.raises(ClientError) as error:
        ec2.describe_capacity_reservations(CapacityReservationIds=["cr-00000000000000000"])
    assert code(error) == "InvalidCapacityReservationId.NotFound"


def test_zones_that_offer_p5_can_be_set(own_server: Server) -> None:
    ec2 = clients(own_server)("ec2")
    where = {"LocationType": "availability-zone", "Filters": [{"Name": "instance-type", "Values": ["p5.48xlarge"]}]}
    before = [o["Location"] for o in ec2.describe_instance_type_offerings(**where)["InstanceTypeOfferings"]]
    try:
        admin(own_server, "offerings", {"instanceType": "p5.48xlarge", "zones": ["us-east-1b"]})
        offered = ec2.describe_instance_type_offerings(**where)["InstanceTypeOfferings"]
        assert [o["Location"] for o in offered] == ["us-east-1b"]
    finally:
        admin(own_server, "offerings", {"instanceType": "p5.48xlarge", "zones": before})


def test_ami_releases_can_be_set(own_server: Server) -> None:
    ssm = clients(own_server)("ssm")
    before = ssm.get_parameter(Name=f"{NVIDIA}/recommended/image_id")["Parameter"]["Value"]
    admin(own_server, "images", {"releases": ["20260901"]})
    after = ssm.get_parameter(Name=f"{NVIDIA}/recommended/image_id")["Parameter"]["Value"]
    assert after != before
    with pytest.raises(ClientError):
        ssm.get_parameter(Name=f"{NVIDIA}/amazon-eks-node-al2023-x86_64-nvidia-1.36-v20260714/image_id")


def test_faults_answer_instead(own_server: Server) -> None:
    quotas = clients(own_server)("service-quotas")
    fault = {"service": "service-quotas", "operation": "GetServiceQuota", "code": "AccessDeniedException",
             "message": "not authorized to perform: servicequotas:GetServiceQuota", "times": 1}  # fmt: skip
    admin(own_server, "faults", {"faults": [fault]})
    with pytest.raises(ClientError) as error:
        quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-417A185B")
    assert code(error) == "AccessDeniedException"
    assert quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-417A185B")["Quota"]


def test_calls_are_counted_by_the_program_that_makes_them(own_server: Server) -> None:
    clients(own_server)("sts").get_caller_identity()
    seen = own_server.front.seen()
    assert [(c["service"], c["operation"], c["count"]) for c in seen] == [("sts", "GetCallerIdentity", 1)]


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [("/moto-api/reset", 403, "journal"), ("/_srvmod/nothing", 404, "quotas")],
)
def test_what_would_bypass_the_journal_is_refused(server: Server, path: str, status: int, said: str) -> None:
    request = urllib.request.Request(f"{server.url}{path}", b"{}", {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(request)
    assert error.value.code == status
    assert said in error.value.read().decode()


def test_a_wrong_access_key_is_refused() -> None:
    running = start(access_key="AKIAOTHER")
    try:
        with pytest.raises(ClientError) as error:
            clients(running)("ec2").describe_vpcs()
        assert code(error) == "InvalidClientTokenId"
    finally:
        running.stop()
