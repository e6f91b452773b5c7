"""Simulated EKS: what it takes, what it refuses, and that the message names the argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from srvmod.local.aws.serve import Server

from .conftest import ACCOUNT, ENDPOINT, clients, start, trust

Client = Callable[[str], Any]
ROLE = f"arn:aws:iam::{ACCOUNT}:role/eks"
CREATOR = f"arn:aws:iam::{ACCOUNT}:user/moto"
"""Who calls here: moto's answer for an access key that it doesn't know."""
ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


@pytest.fixture(scope="module")
def subnets(client: Client) -> list[str]:
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    client("iam").create_role(RoleName="eks", AssumeRolePolicyDocument=trust("eks.amazonaws.com"))
    return [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{i}.0/24", AvailabilityZone=f"us-east-1{z}")["Subnet"]["SubnetId"]
        for i, z in enumerate("ab")
    ]


@pytest.fixture(scope="module")
def cluster(client: Client, subnets: list[str]) -> dict[str, Any]:
    made: dict[str, Any] = client("eks").create_cluster(
        name="c", version="1.36", roleArn=ROLE, accessConfig={"authenticationMode": "API"},
        resourcesVpcConfig={"subnetIds": subnets, "endpointPublicAccess": False, "endpointPrivateAccess": True},
        logging={"clusterLogging": [{"types": ["audit"], "enabled": True}]}, tags={"a": "b"},
    )["cluster"]  # fmt: skip
    return made


def test_a_cluster_has_the_api_server_of_the_local_stack(client: Client, cluster: dict[str, Any]) -> None:
    assert (cluster["endpoint"], cluster["certificateAuthority"]["data"]) == ENDPOINT
    assert cluster["status"] == "ACTIVE"
    group = cluster["resourcesVpcConfig"]["clusterSecurityGroupId"]
    found = client("ec2").describe_security_groups(GroupIds=[group])["SecurityGroups"][0]
    assert {"Key": "aws:eks:cluster-name", "Value": "c"} in found["Tags"]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"roleArn": f"arn:aws:iam::{ACCOUNT}:role/wrong"}, "roleArn: role arn:aws:iam::123456789012:role/wrong"),
        ({"version": "1.99"}, "version: unsupported Kubernetes version 1.99"),
        ({"resourcesVpcConfig": {"subnetIds": ["subnet-1"]}}, "resourcesVpcConfig.subnetIds"),
        ({"name": "c"}, "Cluster already exists with name: c"),
    ],
)
def test_a_refusal_names_the_argument(
    client: Client, cluster: dict[str, Any], subnets: list[str], change: dict[str, Any], named: str
) -> None:
    given = {"name": "d", "roleArn": ROLE, "resourcesVpcConfig": {"subnetIds": subnets}, **change}
    with pytest.raises(ClientError, match="Exception") as error:
        client("eks").create_cluster(**given)
    assert named in str(error.value)


def test_subnets_in_one_zone_are_too_few(client: Client, subnets: list[str]) -> None:
    with pytest.raises(ClientError, match="at least two zones"):
        client("eks").create_cluster(name="d", roleArn=ROLE, resourcesVpcConfig={"subnetIds": subnets[:1]})


def test_updates_are_seen(client: Client, cluster: dict[str, Any]) -> None:
    eks = client("eks")
    everything = [{"types": ["api", "audit"], "enabled": True}]
    update = eks.update_cluster_config(name="c", logging={"clusterLogging": everything})["update"]
    assert eks.describe_update(name="c", updateId=update["id"])["update"]["status"] == "Successful"
    on = [g["types"] for g in eks.describe_cluster(name="c")["cluster"]["logging"]["clusterLogging"] if g["enabled"]]
    assert on == [["api", "audit"]]
    eks.tag_resource(resourceArn=cluster["arn"], tags={"x": "y"})
    eks.untag_resource(resourceArn=cluster["arn"], tagKeys=["a"])
    assert eks.list_tags_for_resource(resourceArn=cluster["arn"])["tags"] == {"x": "y"}


def test_access_entries_and_policies(client: Client, cluster: dict[str, Any]) -> None:
    eks = client("eks")
    eks.create_access_entry(clusterName="c", principalArn=ROLE)
    scope = {"type": "cluster"}
    eks.associate_access_policy(clusterName="c", principalArn=ROLE, policyArn=ADMIN, accessScope=scope)
    found = eks.list_associated_access_policies(clusterName="c", principalArn=ROLE)["associatedAccessPolicies"]
    assert [p["policyArn"] for p in found] == [ADMIN]
    with pytest.raises(ClientError, match="policyArn"):
        eks.associate_access_policy(clusterName="c", principalArn=ROLE, policyArn=ADMIN + "x", accessScope=scope)
    with pytest.raises(ClientError, match=r"principalArn: role .*nobody"):
        eks.create_access_entry(clusterName="c", principalArn=f"arn:aws:iam::{ACCOUNT}:role/nobody", type="EC2_LINUX")
    with pytest.raises(ClientError, match=r"kubernetesGroups: \['system:masters'\]"):
        eks.create_access_entry(clusterName="c", principalArn=f"{CREATOR}s", kubernetesGroups=["system:masters"])
    eks.delete_access_entry(clusterName="c", principalArn=ROLE)
    assert ROLE not in eks.list_access_entries(clusterName="c")["accessEntries"]


def test_the_creator_is_an_admin_unless_the_call_says_no(
    client: Client, cluster: dict[str, Any], subnets: list[str]
) -> None:
    eks = client("eks")
    found = eks.list_associated_access_policies(clusterName="c", principalArn=CREATOR)["associatedAccessPolicies"]
    assert [p["policyArn"] for p in found] == [ADMIN]
    with pytest.raises(eks.exceptions.ResourceInUseException, match=CREATOR):
        eks.create_access_entry(clusterName="c", principalArn=CREATOR)
    access = {"bootstrapClusterCreatorAdminPermissions": False}
    made = {"name": "quiet", "roleArn": ROLE, "resourcesVpcConfig": {"subnetIds": subnets}}
    with pytest.raises(ClientError, match="must be true"):
        eks.create_cluster(**made, accessConfig=access)
    eks.create_cluster(**made, accessConfig={**access, "authenticationMode": "API"})
    assert eks.list_access_entries(clusterName="quiet")["accessEntries"] == []
    eks.delete_cluster(name="quiet")


def test_a_session_of_a_role_creates_as_the_role_with_its_path(
    server: Server, client: Client, subnets: list[str]
) -> None:
    made = client("iam").create_role(
        Path="/platform/", RoleName="deployer", AssumeRolePolicyDocument=trust("eks.amazonaws.com")
    )["Role"]["Arn"]
    key = client("sts").assume_role(RoleArn=made, RoleSessionName="ci")["Credentials"]["AccessKeyId"]
    deployer = clients(server, key)("eks")
    deployer.create_cluster(
        name="of-a-role", roleArn=ROLE, resourcesVpcConfig={"subnetIds": subnets},
        accessConfig={"authenticationMode": "API"},
    )  # fmt: skip
    assert deployer.list_access_entries(clusterName="of-a-role")["accessEntries"] == [made]
    deployer.delete_cluster(name="of-a-role")


def test_addons_and_pod_identities(client: Client, cluster: dict[str, Any]) -> None:
    eks = client("eks")
    addon = eks.create_addon(clusterName="c", addonName="coredns", addonVersion="v1.12.0-eksbuild.1")["addon"]
    assert (addon["status"], eks.list_addons(clusterName="c")["addons"]) == ("ACTIVE", ["coredns"])
    with pytest.raises(ClientError, match="addonVersion: 'latest'"):
        eks.create_addon(clusterName="c", addonName="vpc-cni", addonVersion="latest")
    with pytest.raises(ClientError, match="addonName: Addon my-addon"):
        eks.create_addon(clusterName="c", addonName="my-addon")
    pair = {"clusterName": "c", "namespace": "kube-system", "serviceAccount": "karpenter", "roleArn": ROLE}
    made = eks.create_pod_identity_association(**pair)["association"]
    assert (
        eks.list_pod_identity_associations(clusterName="c", namespace="kube-system")["associations"][0]["associationId"]
        == (made["associationId"])
    )
    with pytest.raises(ClientError, match="Association already exists"):
        eks.create_pod_identity_association(**pair)


def test_a_cluster_with_a_node_group_or_protection_stays(
    client: Client, cluster: dict[str, Any], subnets: list[str]
) -> None:
    eks = client("eks")
    sizes = {"minSize": 2, "maxSize": 3, "desiredSize": 2}
    eks.create_nodegroup(clusterName="c", nodegroupName="g", nodeRole=ROLE, subnets=subnets, scalingConfig=sizes)
    with pytest.raises(ClientError, match="nodegroups attached"):
        eks.delete_cluster(name="c")
    with pytest.raises(ClientError, match="Minimum capacity 3 can't be greater than desired size 2"):
        eks.update_nodegroup_config(clusterName="c", nodegroupName="g", scalingConfig={"minSize": 3})
    with pytest.raises(ClientError, match="desired capacity 2 can't be greater than max size 1"):
        eks.update_nodegroup_config(clusterName="c", nodegroupName="g", scalingConfig={"minSize": 1, "maxSize": 1})
    with pytest.raises(eks.exceptions.ResourceInUseException, match="NodeGroup already exists"):
        eks.create_nodegroup(clusterName="c", nodegroupName="g", nodeRole=ROLE, subnets=subnets, scalingConfig=sizes)
    eks.update_nodegroup_config(clusterName="c", nodegroupName="g", scalingConfig={"maxSize": 4})
    assert eks.describe_nodegroup(clusterName="c", nodegroupName="g")["nodegroup"]["scalingConfig"]["maxSize"] == 4
    eks.delete_nodegroup(clusterName="c", nodegroupName="g")
    eks.update_cluster_config(name="c", deletionProtection=True)
    with pytest.raises(ClientError, match="deletionProtection"):
        eks.delete_cluster(name="c")
    eks.update_cluster_config(name="c", deletionProtection=False)
    eks.delete_cluster(name="c")
    with pytest.raises(ClientError, match="No cluster found for name: c"):
        eks.describe_cluster(name="c")


def test_versions_say_until_when_they_are_supported(client: Client) -> None:
    found = client("eks").describe_cluster_versions(clusterVersions=["1.34", "1.36"])["clusterVersions"]
    assert [v["clusterVersion"] for v in found] == ["1.34", "1.36"]
    assert found[0]["endOfStandardSupportDate"].date().isoformat() in {"2026-12-01", "2026-12-02"}


def test_without_an_api_server_there_is_no_cluster() -> None:
    running: Server = start(endpoint=None)
    try:
        with pytest.raises(ClientError, match="--cluster-endpoint"):
            clients(running)("eks").create_cluster(name="c", roleArn=ROLE, resourcesVpcConfig={"subnetIds": []})
    finally:
        running.stop()
