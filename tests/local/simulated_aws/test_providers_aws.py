"""Every type through the provider's protocol: made, read back without drift, changed, replaced, taken away."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from srvmod.local.providers.aws.client import ConfigError, configure
from srvmod.local.providers.aws.registry import TYPES
from srvmod.local.providers.values import UNKNOWN, read, write

from .conftest import ACCOUNT, Aborted, Engine, Server, trust

Props = dict[str, Any]
MANAGED = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"


def policy(action: str, resource: str) -> str:
    return json.dumps(
        {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": [action], "Resource": resource}]}
    )


def open_policy(principal: Any, action: str, resource: str) -> str:
    statement = {"Effect": "Allow", "Principal": principal, "Action": action, "Resource": resource}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


class World:
    """Makes the samples of all types, each after what it hangs on."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.made: dict[str, Props] = {}

    def __call__(self, short: str, name: str = "x", suffix: str = "") -> Props:
        """The resource of type ``…:short``, made once per name."""
        key = f"{short}/{name}{suffix}"
        if key not in self.made:
            token = next(t for t in TYPES if t.split(":")[-1] == short)
            self.made[key] = self.engine.create(token, name, self.props(short, name))
        return self.made[key]

    def identity(self, short: str, name: str = "x") -> str:
        return str(self(short, name)["id"])

    def state(self, short: str, output: str, name: str = "x") -> Any:
        return self(short, name)["state"][output]

    def props(self, short: str, name: str) -> Props:
        return {k: v for k, v in SAMPLES[short](self, name).items() if v is not None}


def subnets(w: World) -> list[str]:
    return [w.identity("Subnet", z) for z in "ab"]


TAGS = {"Name": "x", "srvmod.dev/env": "test"}
SAMPLES: dict[str, Callable[[World, str], Props]] = {
    "Vpc": lambda w, n: {
        "cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True, "enableDnsSupport": True, "tags": TAGS},
    "Subnet": lambda w, n: {
        "vpcId": w.identity("Vpc"), "cidrBlock": f"10.0.{ord(n)}.0/24", "availabilityZone": "us-east-1" + n[0],
        "mapPublicIpOnLaunch": True, "tags": TAGS},
    "InternetGateway": lambda w, n: {"vpcId": w.identity("Vpc"), "tags": TAGS},
    "Eip": lambda w, n: {"domain": "vpc", "tags": TAGS},
    "NatGateway": lambda w, n: {
        "allocationId": w.identity("Eip"), "subnetId": w.identity("Subnet", "a"), "tags": TAGS},
    "VpcEndpoint": lambda w, n: {
        "vpcId": w.identity("Vpc"), "serviceName": "com.amazonaws.us-east-1.ecr.api", "vpcEndpointType": "Interface",
        "subnetIds": subnets(w), "securityGroupIds": [w.identity("SecurityGroup")], "privateDnsEnabled": True,
        "tags": TAGS},
    "RouteTable": lambda w, n: {"vpcId": w.identity("Vpc"), "tags": TAGS},
    "Route": lambda w, n: {
        "routeTableId": w.identity("RouteTable"), "destinationCidrBlock": "0.0.0.0/0",
        "gatewayId": w.identity("InternetGateway")},
    "RouteTableAssociation": lambda w, n: {
        "routeTableId": w.identity("RouteTable"), "subnetId": w.identity("Subnet", "a")},
    "Tag": lambda w, n: {
        "resourceId": w.identity("SecurityGroup", "tagged"), "key": "karpenter.sh/discovery", "value": "c"},
    "FlowLog": lambda w, n: {
        "vpcId": w.identity("Vpc"), "trafficType": "ALL", "logDestinationType": "cloud-watch-logs",
        "logDestination": w.state("LogGroup", "arn"), "iamRoleArn": w.state("Role", "arn"),
        "maxAggregationInterval": 60, "tags": TAGS},
    "SecurityGroup": lambda w, n: {
        "name": f"group-{n}", "description": "d", "vpcId": w.identity("Vpc"), "tags": TAGS},
    "DefaultSecurityGroup": lambda w, n: {"vpcId": w.identity("Vpc"), "tags": TAGS},
    "LaunchTemplate": lambda w, n: {
        "name": n, "updateDefaultVersion": True,
        "metadataOptions": {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1},
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "ebs": {
            "volumeSize": 50, "volumeType": "gp3", "encrypted": "true", "deleteOnTermination": "true"}}],
        "tagSpecifications": [{"resourceType": "volume", "tags": {"a": "b"}}], "tags": TAGS},
    "SecurityGroupIngressRule": lambda w, n: {
        "securityGroupId": w.identity("SecurityGroup"), "ipProtocol": "tcp", "fromPort": 443, "toPort": 443,
        "cidrIpv4": "10.0.0.0/16", "description": "d", "tags": TAGS},
    "SecurityGroupEgressRule": lambda w, n: {
        "securityGroupId": w.identity("SecurityGroup"), "ipProtocol": "-1", "cidrIpv4": "0.0.0.0/0", "tags": TAGS},
    "Role": lambda w, n: {
        "name": f"role-{n}", "description": "d", "assumeRolePolicy": trust("ec2.amazonaws.com"), "tags": TAGS},
    "Policy": lambda w, n: {"description": "d", "policy": policy("eks:DescribeCluster", "*"), "tags": TAGS},
    "RolePolicyAttachment": lambda w, n: {"role": w.identity("Role"), "policyArn": MANAGED},
    "RolePolicy": lambda w, n: {"role": w.identity("Role"), "policy": policy("s3:GetObject", "arn:aws:s3:::x/*")},
    "InstanceProfile": lambda w, n: {"name": f"profile-{n}", "role": w.state("Role", "name"), "tags": TAGS},
    "Key": lambda w, n: {
        "description": "d", "enableKeyRotation": True, "deletionWindowInDays": 7, "tags": TAGS,
        "policy": open_policy({"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "kms:*", "*")},
    "Alias": lambda w, n: {"name": f"alias/{n}", "targetKeyId": w.state("Key", "keyId")},
    "Cluster": lambda w, n: {
        "name": n, "roleArn": w.state("Role", "arn"), "version": "1.36",
        "vpcConfig": {"subnetIds": subnets(w), "endpointPrivateAccess": True, "endpointPublicAccess": False},
        "accessConfig": {"authenticationMode": "API"}, "deletionProtection": False,
        "enabledClusterLogTypes": ["audit", "api"], "upgradePolicy": {"supportType": "STANDARD"},
        "bootstrapSelfManagedAddons": False,
        "encryptionConfig": {"provider": {"keyArn": w.state("Key", "arn")}, "resources": ["secrets"]},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": "10.96.0.0/16"}, "tags": TAGS},
    "NodeGroup": lambda w, n: {
        "clusterName": w.identity("Cluster"), "nodeGroupName": n, "nodeRoleArn": w.state("Role", "arn"),
        "subnetIds": subnets(w), "scalingConfig": {"minSize": 2, "maxSize": 3, "desiredSize": 2},
        "instanceTypes": ["m7i.large"], "amiType": "AL2023_x86_64_STANDARD", "capacityType": "ON_DEMAND",
        "diskSize": 50, "labels": {"a": "b"}, "updateConfig": {"maxUnavailable": 1}, "version": "1.36", "tags": TAGS},
    "Addon": lambda w, n: {
        "clusterName": w.identity("Cluster"), "addonName": "coredns", "addonVersion": "v1.12.0-eksbuild.1",
        "configurationValues": "{}", "resolveConflictsOnCreate": "OVERWRITE",
        "resolveConflictsOnUpdate": "OVERWRITE", "tags": TAGS},
    "AccessEntry": lambda w, n: {
        "clusterName": w.identity("Cluster"), "principalArn": w.state("Role", "arn"), "type": "STANDARD",
        "tags": TAGS},
    "AccessPolicyAssociation": lambda w, n: {
        "clusterName": w.identity("Cluster"), "principalArn": w.state("AccessEntry", "principalArn"),
        "policyArn": ADMIN, "accessScope": {"type": "cluster"}},
    "PodIdentityAssociation": lambda w, n: {
        "clusterName": w.identity("Cluster"), "namespace": "kube-system", "serviceAccount": "karpenter",
        "roleArn": w.state("Role", "arn"), "tags": TAGS},
    "Queue": lambda w, n: {"name": n, "messageRetentionSeconds": 300, "sqsManagedSseEnabled": True, "tags": TAGS},
    "QueuePolicy": lambda w, n: {
        "queueUrl": w.identity("Queue"),
        "policy": open_policy({"Service": "events.amazonaws.com"}, "sqs:SendMessage", w.state("Queue", "arn"))},
    "EventRule": lambda w, n: {
        "name": n, "description": "d", "eventPattern": json.dumps({"source": ["aws.ec2"]}), "tags": TAGS},
    "EventTarget": lambda w, n: {"rule": w.identity("EventRule"), "targetId": "q", "arn": w.state("Queue", "arn")},
    "LogGroup": lambda w, n: {"name": f"/test/{n}", "retentionInDays": 7, "tags": TAGS},
    "Bucket": lambda w, n: {"bucket": f"bucket-{n}", "forceDestroy": True, "tags": TAGS},
    "BucketVersioning": lambda w, n: {
        "bucket": w.identity("Bucket"), "versioningConfiguration": {"status": "Enabled"}},
    "BucketServerSideEncryptionConfiguration": lambda w, n: {
        "bucket": w.identity("Bucket"), "rules": [{"bucketKeyEnabled": True, "applyServerSideEncryptionByDefault": {
            "sseAlgorithm": "aws:kms", "kmsMasterKeyId": w.state("Key", "arn")}}]},
    "BucketPublicAccessBlock": lambda w, n: {
        "bucket": w.identity("Bucket"), "blockPublicAcls": True, "blockPublicPolicy": True,
        "ignorePublicAcls": True, "restrictPublicBuckets": True},
    "BucketOwnershipControls": lambda w, n: {
        "bucket": w.identity("Bucket"), "rule": {"objectOwnership": "BucketOwnerEnforced"}},
    "BucketPolicy": lambda w, n: {
        "bucket": w.identity("Bucket", n),
        "policy": open_policy(
            {"Service": "logging.s3.amazonaws.com"}, "s3:PutObject", f"arn:aws:s3:::bucket-{n}/*")},
    "BucketLogging": lambda w, n: {
        "bucket": w.identity("Bucket"), "targetBucket": w.identity("BucketPolicy", "logs"), "targetPrefix": "log/"},
    "BucketLifecycleConfiguration": lambda w, n: {
        "bucket": w.identity("Bucket"), "rules": [{
            "id": "expire", "status": "Enabled", "filter": {"prefix": ""},
            "abortIncompleteMultipartUpload": {"daysAfterInitiation": 7}, "expiration": {"days": 365},
            "noncurrentVersionExpiration": {"noncurrentDays": 30}}]},
    "Repository": lambda w, n: {
        "name": f"repo/{n}", "imageTagMutability": "IMMUTABLE", "imageScanningConfiguration": {"scanOnPush": True},
        "encryptionConfigurations": [{"encryptionType": "KMS", "kmsKey": w.state("Key", "arn")}],
        "forceDelete": True, "tags": TAGS},
    "LifecyclePolicy": lambda w, n: {
        "repository": w.identity("Repository"),
        "policy": json.dumps({"rules": [{"rulePriority": 1, "action": {"type": "expire"}, "selection": {
            "tagStatus": "untagged", "countType": "imageCountMoreThan", "countNumber": 9}}]})},
}  # fmt: skip
CHANGES: dict[str, Props] = {
    "Vpc": {"enableDnsHostnames": False},
    "Subnet": {"mapPublicIpOnLaunch": False},
    "SecurityGroupIngressRule": {"description": "other"},
    "Role": {"description": "other", "assumeRolePolicy": trust("eks.amazonaws.com")},
    "Policy": {"policy": policy("eks:ListClusters", "*")},
    "RolePolicy": {"policy": policy("s3:ListBucket", "*")},
    "Key": {"description": "other", "enableKeyRotation": False},
    "Cluster": {"enabledClusterLogTypes": ["audit"], "deletionProtection": True},
    "NodeGroup": {"scalingConfig": {"minSize": 2, "maxSize": 5, "desiredSize": 3}, "labels": {"c": "d"}},
    "LaunchTemplate": {"metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 2}},
    "Addon": {"addonVersion": "v1.12.1-eksbuild.1"},
    "Queue": {"messageRetentionSeconds": 600},
    "EventRule": {"description": "other"},
    "LogGroup": {"retentionInDays": 30},
    "BucketVersioning": {"versioningConfiguration": {"status": "Suspended"}},
    "BucketPublicAccessBlock": {"restrictPublicBuckets": False},
    "BucketOwnershipControls": {"rule": {"objectOwnership": "BucketOwnerPreferred"}},
    "Repository": {"imageScanningConfiguration": {"scanOnPush": False}},
    "Tag": {"value": "other"},
}


@pytest.fixture(scope="module")
def world(engine: Engine) -> World:
    return World(engine)


def test_there_is_a_sample_of_every_type() -> None:
    assert set(SAMPLES) == {token.split(":")[-1] for token in TYPES}


@pytest.mark.parametrize("short", SAMPLES)
def test_made_and_read_back_there_is_no_difference(world: World, engine: Engine, short: str) -> None:
    found = world(short, "a" if short == "Subnet" else "x")
    again = engine.refresh(found)
    assert again is not None
    assert again["inputs"] == found["inputs"]
    assert again["state"] == found["state"]
    assert not engine.diff(again, world.props(short, found["name"])).diffs
    missing = [o for o in TYPES[found["kind"]].outputs if o not in found["state"]]
    assert missing == []


@pytest.mark.parametrize("short", CHANGES)
def test_a_change_in_place_arrives(world: World, engine: Engine, short: str) -> None:
    found = world(short, "a" if short == "Subnet" else "x")
    wanted = {**world.props(short, found["name"]), **CHANGES[short]}
    diff = engine.diff(found, wanted)
    assert set(diff.diffs) == set(CHANGES[short])
    assert not diff.replaces
    planned = engine.update(found, wanted, preview=True)
    assert UNKNOWN not in json.dumps(planned["state"])
    updated = engine.update(found, wanted)
    again = engine.refresh(updated)
    assert again is not None
    assert again["inputs"] == updated["inputs"]
    engine.update(updated, world.props(short, found["name"]))


TAGGED = [t.split(":")[-1] for t, k in TYPES.items() if "tags" in k.args]


@pytest.mark.parametrize("short", TAGGED)
def test_tags_are_set_changed_and_taken_away(world: World, engine: Engine, short: str) -> None:
    found = world(short, "a" if short == "Subnet" else "x")
    wanted = {**world.props(short, found["name"]), "tags": {"Name": "y", "new": "z"}}
    updated = engine.update(found, wanted)
    assert updated["state"]["tagsAll"] == {"Name": "y", "new": "z"}
    again = engine.refresh(updated)
    assert again is not None
    assert again["inputs"]["tags"] == {"Name": "y", "new": "z"}
    engine.update(updated, world.props(short, found["name"]))


@pytest.mark.parametrize("short", SAMPLES)
def test_a_preview_makes_nothing_and_knows_what_is_not_known(engine: Engine, server: Server, short: str) -> None:
    token = next(t for t in TYPES if t.split(":")[-1] == short)
    kind = TYPES[token]
    props = {name: UNKNOWN for name, arg in kind.args.items() if arg.required}
    before = server.front.calls.total()
    planned = engine.create(token, "p", props, preview=True)
    assert server.front.calls.total() == before
    assert planned["id"] == ""
    assert {o: planned["state"][o] for o in kind.outputs} == dict.fromkeys(kind.outputs, UNKNOWN)


def test_a_forgotten_thing_is_made_again(world: World, engine: Engine) -> None:
    found = engine.create("aws:sqs/queue:Queue", "gone", {"name": "gone"})
    engine.delete(found)
    assert engine.refresh(found) is None
    engine.delete(found)  # a second time is fine


def test_names_are_made_up_as_the_real_provider_does_it(engine: Engine) -> None:
    answer = read(engine.check("aws:sqs/queue:Queue", "q", {}).inputs)
    assert answer["name"].startswith("q-")
    assert len(answer["name"]) == len("q-1234567")
    later = read(engine.check("aws:sqs/queue:Queue", "q", {}, answer).inputs)
    assert later["name"] == answer["name"]


def test_a_fixed_name_is_deleted_before_it_is_replaced(world: World, engine: Engine) -> None:
    found = world("Role")
    diff = engine.diff(found, {**world.props("Role", "x"), "path": "/other/"})
    assert (list(diff.replaces), diff.deleteBeforeReplace) == (["path"], True)


def test_ignored_changes_are_ignored(world: World, engine: Engine) -> None:
    found = world("NodeGroup")
    wanted = {**world.props("NodeGroup", "x"), "scalingConfig": {"minSize": 2, "maxSize": 3, "desiredSize": 9}}
    assert list(engine.diff(found, wanted).diffs) == ["scalingConfig"]
    assert list(engine.diff(found, wanted, ("scalingConfig.desiredSize",)).diffs) == []


@pytest.mark.parametrize(
    ("kind", "props", "said"),
    [
        ("aws:ec2/subnet:Subnet", {"vpcId": "vpc-00000000000000000", "cidrBlock": "10.0.0.0/24"},
         ["aws:ec2/subnet:Subnet 'bad'", "create_subnet", "VpcId=vpc-00000000000000000", "InvalidVpcID.NotFound"]),
        ("aws:eks/podIdentityAssociation:PodIdentityAssociation",
         {"clusterName": "nope", "namespace": "n", "serviceAccount": "s", "roleArn": "arn:aws:iam::1:role/r"},
         ["'bad'", "clusterName=nope", "No cluster found for name: nope"]),
        ("aws:sqs/queue:Queue", {"name": "bad", "delaySeconds": "soon"}, ["'bad'", "DelaySeconds"]),
    ],
)  # fmt: skip
def test_a_refusal_names_resource_argument_and_cause(engine: Engine, kind: str, props: Props, said: list[str]) -> None:
    with pytest.raises(Aborted) as error:
        engine.create(kind, "bad", props)
    assert [s for s in said if s not in str(error.value)] == []


def test_what_was_half_made_is_handed_to_the_engine(engine: Engine, world: World) -> None:
    from pulumi.runtime.proto import provider_pb2 as pb
    from pulumi.runtime.proto import status_pb2

    props = {"vpcId": "vpc-00000000000000000", "tags": TAGS}
    with pytest.raises(Aborted, match="didn't finish"):
        engine.create("aws:ec2/internetGateway:InternetGateway", "half", props)
    status = status_pb2.Status.FromString(dict(engine.context.trailers)["grpc-status-details-bin"])
    detail = pb.ErrorResourceInitFailed()
    assert status.details[0].Unpack(detail)
    assert detail.id.startswith("igw-")


def test_unknown_types_functions_and_settings_are_named(engine: Engine) -> None:
    with pytest.raises(Aborted, match="no type aws:rds/instance:Instance"):
        engine.check("aws:rds/instance:Instance", "db", {})
    with pytest.raises(Aborted, match="no function aws:ec2/getAmi:getAmi"):
        engine.invoke("aws:ec2/getAmi:getAmi", {})
    with pytest.raises(Aborted, match="allAvailabilityZones isn't handled"):
        engine.invoke("aws:index/getAvailabilityZones:getAvailabilityZones", {"allAvailabilityZones": True})
    with pytest.raises(ConfigError, match="assumeRoles isn't handled"):
        configure({"region": "us-east-1", "assumeRoles": '[{"roleArn": "x"}]'})


def test_functions(engine: Engine) -> None:
    assert engine.invoke("aws:index/getCallerIdentity:getCallerIdentity", {})["accountId"] == ACCOUNT
    zones = engine.invoke("aws:index/getAvailabilityZones:getAvailabilityZones", {"state": "available"})
    assert zones["names"][:2] == ["us-east-1a", "us-east-1b"]
    statement = {"actions": ["s3:GetObject"], "resources": ["*"],
                 "conditions": [{"test": "Bool", "variable": "aws:SecureTransport", "values": ["true"]}]}  # fmt: skip
    document = json.loads(
        engine.invoke("aws:iam/getPolicyDocument:getPolicyDocument", {"statements": [statement]})["json"]
    )
    assert document["Statement"][0]["Condition"] == {"Bool": {"aws:SecureTransport": "true"}}


def test_it_never_calls_anything_that_does_not_say_it_simulates(
    monkeypatch: pytest.MonkeyPatch, server: Server
) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with pytest.raises(ConfigError, match="never calls real AWS"):
        configure({"region": "us-east-1"})
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(ConfigError, match="no simulated AWS answers"):
        configure({"region": "us-east-1"})
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    with pytest.raises(ConfigError, match=f"999999999999.*{ACCOUNT}"):
        configure({"region": "us-east-1", "allowedAccountIds": '["999999999999"]'})


def test_a_users_proxy_is_not_asked(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    account = configure({"region": "us-east-1", "accessKey": "k", "secretKey": "s"})
    assert account("sts", "get_caller_identity")["Account"] == ACCOUNT


def test_default_tags_are_added(monkeypatch: pytest.MonkeyPatch, server: Server) -> None:
    from srvmod.local.providers.aws.servicer import AwsProvider

    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIATEST")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    provider = AwsProvider()
    provider.aws = configure({"region": "us-east-1", "defaultTags": '{"tags": {"owner": "us"}}'})
    engine = Engine(provider)
    found = engine.create("aws:sqs/queue:Queue", "tagged", {"tags": {"a": "b"}})
    assert found["state"]["tagsAll"] == {"owner": "us", "a": "b"}
    again = engine.refresh(found)
    assert again is not None
    assert again["inputs"]["tags"] == {"a": "b"}


def test_values_survive_the_wire() -> None:
    assert read(write({"a": 1, "b": 1.5, "c": None, "d": [True, {"e": "f"}]})) == {
        "a": 1,
        "b": 1.5,
        "d": [True, {"e": "f"}],
    }


def test_everything_can_be_taken_away_again(world: World, engine: Engine) -> None:
    """Last: in the reverse order of making, nothing is left that blocks."""
    for found in reversed(list(world.made.values())):
        engine.delete(found)
        stays = "Versioning" in found["kind"]  # can't be switched off in S3, only suspended
        stays |= "DefaultSecurityGroup" in found["kind"]  # goes with its VPC
        assert stays or engine.refresh(found) is None, found["kind"]
