"""Functions of the aws package: lookups that don't make anything."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.values import Props


def _known(token: str, props: Props, *names: str) -> None:
    if other := sorted(set(props) - set(names) - {"region"}):
        raise ValueError(f"argument {', '.join(other)} isn't handled by the simulated {token}")


def caller_identity(aws: Aws, props: Props) -> Props:
    _known("getCallerIdentity", props)
    found = aws("sts", "get_caller_identity")
    return {"accountId": found["Account"], "arn": found["Arn"], "userId": found["UserId"], "id": found["Account"]}


def partition(aws: Aws, props: Props) -> Props:
    _known("getPartition", props)
    return {"partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws", "id": "aws"}


def region(aws: Aws, props: Props) -> Props:
    _known("getRegion", props)
    endpoint = f"ec2.{aws.region}.amazonaws.com"
    return {"name": aws.region, "region": aws.region, "description": aws.region, "endpoint": endpoint,
            "id": aws.region}  # fmt: skip


def availability_zones(aws: Aws, props: Props) -> Props:
    _known("getAvailabilityZones", props, "state")
    zones = [z for z in aws("ec2", "describe_availability_zones")["AvailabilityZones"]
             if props.get("state") in {None, z["State"]}]  # fmt: skip
    return {
        "names": [z["ZoneName"] for z in zones],
        "zoneIds": [z["ZoneId"] for z in zones],
        "groupNames": [aws.region],
        "id": aws.region,
    }


def secret_version(aws: Aws, props: Props) -> Props:
    _known("getSecretVersion", props, "secretId")
    found = aws("secretsmanager", "get_secret_value", SecretId=props["secretId"])
    return {
        "id": f"{found['ARN']}|{found['VersionId']}",
        "arn": found["ARN"],
        "secretId": props["secretId"],
        "secretString": found["SecretString"],
        "versionId": found["VersionId"],
        "versionStages": found["VersionStages"],
        "createdDate": str(found["CreatedDate"]),
    }


def role(aws: Aws, props: Props) -> Props:
    _known("getRole", props, "name")
    found = aws("iam", "get_role", RoleName=props["name"])["Role"]
    return {
        "id": found["RoleName"],
        "name": found["RoleName"],
        "arn": found["Arn"],
        "path": found["Path"],
        "uniqueId": found["RoleId"],
        "createDate": str(found["CreateDate"]),
        "maxSessionDuration": found["MaxSessionDuration"],
        "assumeRolePolicy": json.dumps(found["AssumeRolePolicyDocument"]),
    }


def policy_document(aws: Aws, props: Props) -> Props:
    _known("getPolicyDocument", props, "statements", "version", "policyId")
    statements = [_statement(s) for s in props.get("statements", [])]
    document: Props = {"Version": props.get("version", "2012-10-17"), "Statement": statements}
    if "policyId" in props:
        document["Id"] = props["policyId"]
    return {"json": json.dumps(document, indent=2), "minifiedJson": json.dumps(document), "id": "simulated"}


def _statement(given: Props) -> Props:
    _known("getPolicyDocument", given, "sid", "effect", "actions", "notActions", "resources", "notResources",
           "principals", "notPrincipals", "conditions")  # fmt: skip
    made: Props = {"Effect": given.get("effect", "Allow")}
    if "sid" in given:
        made["Sid"] = given["sid"]
    for name, key in (("actions", "Action"), ("notActions", "NotAction"), ("resources", "Resource"),
                      ("notResources", "NotResource")):  # fmt: skip
        if name in given:
            made[key] = _one(given[name])
    for name, key in (("principals", "Principal"), ("notPrincipals", "NotPrincipal")):
        if name in given:
            made[key] = {p["type"]: _one(p["identifiers"]) for p in given[name]}
    conditions: Props = {}
    for condition in given.get("conditions", []):
        conditions.setdefault(condition["test"], {})[condition["variable"]] = _one(condition["values"])
    return {**made, "Condition": conditions} if conditions else made


def _one(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


INVOKES: dict[str, Callable[[Aws, Props], Props]] = {
    "aws:index/getCallerIdentity:getCallerIdentity": caller_identity,
    "aws:index/getPartition:getPartition": partition,
    "aws:index/getRegion:getRegion": region,
    "aws:index/getAvailabilityZones:getAvailabilityZones": availability_zones,
    "aws:secretsmanager/getSecretVersion:getSecretVersion": secret_version,
    "aws:iam/getRole:getRole": role,
    "aws:iam/getPolicyDocument:getPolicyDocument": policy_document,
}
