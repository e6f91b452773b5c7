"""ECR repositories and their lifecycle policies."""

from __future__ import annotations

from typing import ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, as_list, as_map, tag_changes
from srvmod.local.providers.aws.client import Aws
from srvmod.local.providers.values import Props

_ENCRYPTION = {"encryptionType": Arg("EncryptionType"), "kmsKey": Arg("KmsKey")}


class Repository(Resource):
    token = "aws:ecr/repository:Repository"
    cfn = "AWS::ECR::Repository"
    args: ClassVar = {
        "name": Arg("RepositoryName"),
        "imageTagMutability": Arg("ImageTagMutability"),
        "imageScanningConfiguration": Arg("ImageScanningConfiguration", of={"scanOnPush": Arg("ScanOnPush")}),
        "encryptionConfigurations": Arg("EncryptionConfiguration", of=_ENCRYPTION),
        "forceDelete": Arg("EmptyOnDelete"),
        **TAGS,
    }
    outputs = ("arn", "registryId", "repositoryUrl")
    autoname = "name"

    def create(self, aws: Aws, props: Props) -> str:
        encryption = props.get("encryptionConfigurations")
        aws("ecr", "create_repository", repositoryName=props["name"],
            imageTagMutability=props.get("imageTagMutability"),
            imageScanningConfiguration=props.get("imageScanningConfiguration"),
            encryptionConfiguration=encryption[0] if encryption else None,
            tags=as_list(aws.tags(props)) or None)  # fmt: skip
        return str(props["name"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = aws("ecr", "describe_repositories", repositoryNames=[identity])["repositories"][0]
        tags = aws("ecr", "list_tags_for_resource", resourceArn=found["repositoryArn"]).get("tags")
        return {
            "arn": found["repositoryArn"],
            "registryId": found["registryId"],
            # the address that nodes pull from; in the simulation nothing answers there
            "repositoryUrl": found["repositoryUri"],
            "name": found["repositoryName"],
            "imageTagMutability": found["imageTagMutability"],
            "imageScanningConfiguration": found["imageScanningConfiguration"],
            "encryptionConfigurations": [found["encryptionConfiguration"]],
            "tags": as_map(tags),
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        if old.get("imageTagMutability") != new.get("imageTagMutability"):
            aws("ecr", "put_image_tag_mutability", repositoryName=identity,
                imageTagMutability=new.get("imageTagMutability", "MUTABLE"))  # fmt: skip
        if old.get("imageScanningConfiguration") != new.get("imageScanningConfiguration"):
            aws("ecr", "put_image_scanning_configuration", repositoryName=identity,
                imageScanningConfiguration=new.get("imageScanningConfiguration", {"scanOnPush": False}))  # fmt: skip
        arn = f"arn:aws:ecr:{aws.region}:{aws.account}:repository/{identity}"
        put, gone = tag_changes(aws, old, new)
        if put:
            aws("ecr", "tag_resource", resourceArn=arn, tags=as_list(put))
        if gone:
            aws("ecr", "untag_resource", resourceArn=arn, tagKeys=gone)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ecr", "delete_repository", repositoryName=identity, force=props.get("forceDelete", False))


class LifecyclePolicy(Resource):
    token = "aws:ecr/lifecyclePolicy:LifecyclePolicy"
    cfn = "AWS::ECR::Repository"
    args: ClassVar = {
        "repository": Arg("RepositoryName", required=True),
        "policy": Arg("LifecyclePolicy/LifecyclePolicyText", required=True, document=True),
    }
    outputs = ("registryId",)

    def create(self, aws: Aws, props: Props) -> str:
        self.update(aws, "", {}, props)
        return str(props["repository"])

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = aws("ecr", "get_lifecycle_policy", repositoryName=identity)
        return {"repository": identity, "policy": found["lifecyclePolicyText"], "registryId": found["registryId"]}

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        aws("ecr", "put_lifecycle_policy", repositoryName=new["repository"], lifecyclePolicyText=new["policy"])

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("ecr", "delete_lifecycle_policy", repositoryName=identity)


TYPES: tuple[Resource, ...] = (Repository(), LifecyclePolicy())
