"""Keys and their aliases."""

from __future__ import annotations

from typing import ClassVar

from srvmod.local.providers.aws.base import Arg, Resource, half_made, tag_changes
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.values import Props

_GONE = {"PendingDeletion", "PendingReplicaDeletion"}


def _list(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"TagKey": k, "TagValue": v} for k, v in tags.items()]


class Key(Resource):
    token = "aws:kms/key:Key"
    cfn = "AWS::KMS::Key"
    args: ClassVar = {
        "description": Arg("Description"),
        "enableKeyRotation": Arg("EnableKeyRotation"),
        "deletionWindowInDays": Arg("PendingWindowInDays"),
        "policy": Arg("KeyPolicy", document=True),
        "tags": Arg("Tags"),
    }
    outputs = ("arn", "keyId", "keyUsage", "multiRegion")
    absent = ("rotationPeriodInDays",)

    def create(self, aws: Aws, props: Props) -> str:
        made = aws("kms", "create_key", Description=props.get("description"), Policy=props.get("policy"),
                   Tags=_list(aws.tags(props)) or None)  # fmt: skip
        identity: str = made["KeyMetadata"]["KeyId"]
        with half_made(identity):
            self._rotate(aws, identity, {}, props)
        return identity

    def _rotate(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        wanted = new.get("enableKeyRotation", False)
        if wanted != old.get("enableKeyRotation", False):
            aws("kms", "enable_key_rotation" if wanted else "disable_key_rotation", KeyId=identity)

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        key = aws("kms", "describe_key", KeyId=identity)["KeyMetadata"]
        if key["KeyState"] in _GONE:
            return None
        tags = aws("kms", "list_resource_tags", KeyId=identity).get("Tags", [])
        return {
            "arn": key["Arn"],
            "keyId": key["KeyId"],
            "keyUsage": key.get("KeyUsage", "ENCRYPT_DECRYPT"),
            "multiRegion": key.get("MultiRegion", False),
            "description": key["Description"],
            "policy": aws("kms", "get_key_policy", KeyId=identity, PolicyName="default")["Policy"],
            "enableKeyRotation": aws("kms", "get_key_rotation_status", KeyId=identity)["KeyRotationEnabled"],
            "tags": {t["TagKey"]: t["TagValue"] for t in tags},
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        if old.get("description") != new.get("description"):
            aws("kms", "update_key_description", KeyId=identity, Description=new.get("description", ""))
        if "policy" in new and old.get("policy") != new["policy"]:
            aws("kms", "put_key_policy", KeyId=identity, PolicyName="default", Policy=new["policy"])
        self._rotate(aws, identity, old, new)
        put, gone = tag_changes(aws, old, new)
        if put:
            aws("kms", "tag_resource", KeyId=identity, Tags=_list(put))
        if gone:
            aws("kms", "untag_resource", KeyId=identity, TagKeys=gone)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("kms", "schedule_key_deletion", KeyId=identity, PendingWindowInDays=props.get("deletionWindowInDays"))


class Alias(Resource):
    token = "aws:kms/alias:Alias"
    cfn = "AWS::KMS::Alias"
    args: ClassVar = {"name": Arg("AliasName", required=True), "targetKeyId": Arg("TargetKeyId", required=True)}
    outputs = ("arn", "targetKeyArn")

    def create(self, aws: Aws, props: Props) -> str:
        aws("kms", "create_alias", AliasName=props["name"], TargetKeyId=props["targetKeyId"])
        return str(props["name"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        aliases = aws("kms", "list_aliases")["Aliases"]
        alias = next((a for a in aliases if a["AliasName"] == identity), None)
        if alias is None:
            return None
        key = alias["TargetKeyId"]
        arn = f"arn:aws:kms:{aws.region}:{aws.account}:key/{key}"
        return {"name": identity, "targetKeyId": key, "arn": alias["AliasArn"], "targetKeyArn": arn}

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        aws("kms", "update_alias", AliasName=identity, TargetKeyId=new["targetKeyId"])

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("kms", "delete_alias", AliasName=identity)


TYPES: tuple[Resource, ...] = (Key(), Alias())
