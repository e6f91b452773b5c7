"""Buckets and the settings that hang on them, each a resource of its own."""

from __future__ import annotations

from typing import Any, ClassVar

from srvmod.local.providers.aws.base import TAGS, Arg, Resource, as_list, as_map, half_made, tag_changes
from srvmod.local.providers.aws.client import Aws, Refused
from srvmod.local.providers.values import Props

_BUCKET = Arg("BucketName", required=True)


class Bucket(Resource):
    token = "aws:s3/bucket:Bucket"
    cfn = "AWS::S3::Bucket"
    args: ClassVar = {"bucket": Arg("BucketName"), "forceDestroy": Arg(), **TAGS}
    outputs = ("arn", "bucketDomainName", "bucketRegion", "bucketRegionalDomainName", "hostedZoneId")
    absent = ("accelerationStatus", "acl", "bucketNamespace", "bucketPrefix", "corsRules", "grants",
              "lifecycleRules", "logging", "objectLockConfiguration", "objectLockEnabled", "policy",
              "replicationConfiguration", "requestPayer", "serverSideEncryptionConfiguration", "versioning",
              "website", "websiteDomain", "websiteEndpoint")  # fmt: skip
    autoname = "bucket"
    longest_name = 63

    def create(self, aws: Aws, props: Props) -> str:
        name: str = props["bucket"]
        where = None if aws.region == "us-east-1" else {"LocationConstraint": aws.region}
        aws("s3", "create_bucket", Bucket=name, CreateBucketConfiguration=where)
        tags = aws.tags(props)
        if tags:
            with half_made(name):
                aws("s3", "put_bucket_tagging", Bucket=name, Tagging={"TagSet": as_list(tags)})
        return name

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        try:
            aws("s3", "head_bucket", Bucket=identity)
            tags = as_map(aws("s3", "get_bucket_tagging", Bucket=identity)["TagSet"])
        except Refused as error:
            if error.code != "NoSuchTagSet":
                raise
            tags = {}
        return {
            "arn": f"arn:aws:s3:::{identity}",
            "bucket": identity,
            "bucketDomainName": f"{identity}.s3.amazonaws.com",
            "bucketRegion": aws.region,
            "bucketRegionalDomainName": f"{identity}.s3.{aws.region}.amazonaws.com",
            "hostedZoneId": "Z3AQBSTGFYJSTF",
            "tags": tags,
        }

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        if any(tag_changes(aws, old, new)):
            tags = as_list(aws.tags(new))
            if tags:
                aws("s3", "put_bucket_tagging", Bucket=identity, Tagging={"TagSet": tags})
            else:
                aws("s3", "delete_bucket_tagging", Bucket=identity)

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        if props.get("forceDestroy"):
            self._empty(aws, identity)
        aws("s3", "delete_bucket", Bucket=identity)

    def _empty(self, aws: Aws, bucket: str) -> None:
        while True:
            found = aws("s3", "list_object_versions", Bucket=bucket)
            entries = [*found.get("Versions", []), *found.get("DeleteMarkers", [])]
            if not entries:
                return
            objects = [{"Key": e["Key"], "VersionId": e["VersionId"]} for e in entries]
            aws("s3", "delete_objects", Bucket=bucket, Delete={"Objects": objects, "Quiet": True})


class Setting(Resource):
    """One setting of a bucket: put, get and delete calls around one argument block. The bucket names it."""

    cfn = "AWS::S3::Bucket"
    put: ClassVar[str]
    get: ClassVar[str]
    remove: ClassVar[str | None]

    def create(self, aws: Aws, props: Props) -> str:
        aws("s3", self.put, Bucket=props["bucket"], **self.request(props))
        return str(props["bucket"])

    def update(self, aws: Aws, identity: str, old: Props, new: Props) -> None:
        aws("s3", self.put, Bucket=identity, **self.request(new))

    def read(self, aws: Aws, identity: str, props: Props) -> Props | None:
        found = self.answer(aws("s3", self.get, Bucket=identity))
        return {"bucket": identity, **found} if found else None

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        if self.remove is not None:
            aws("s3", self.remove, Bucket=identity)

    def request(self, props: Props) -> Props:
        raise NotImplementedError

    def answer(self, found: Props) -> Props:
        raise NotImplementedError


class BucketVersioning(Setting):
    token = "aws:s3/bucketVersioning:BucketVersioning"
    put, get, remove = "put_bucket_versioning", "get_bucket_versioning", None
    args: ClassVar = {
        "bucket": _BUCKET,
        "versioningConfiguration": Arg("VersioningConfiguration", required=True,
                                       of={"status": Arg("Status", required=True)}),
    }  # fmt: skip

    def request(self, props: Props) -> Props:
        return {"VersioningConfiguration": {"Status": props["versioningConfiguration"]["status"]}}

    def answer(self, found: Props) -> Props:
        return {"versioningConfiguration": {"status": found["Status"]}} if "Status" in found else {}

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("s3", self.put, Bucket=identity, VersioningConfiguration={"Status": "Suspended"})


class BucketEncryption(Setting):
    token = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    put, get, remove = "put_bucket_encryption", "get_bucket_encryption", "delete_bucket_encryption"
    args: ClassVar = {
        "bucket": _BUCKET,
        "rules": Arg("BucketEncryption/ServerSideEncryptionConfiguration", required=True, of={
            "applyServerSideEncryptionByDefault": Arg("ServerSideEncryptionByDefault", of={
                "sseAlgorithm": Arg("SSEAlgorithm", required=True), "kmsMasterKeyId": Arg("KMSMasterKeyID"),
            }),
            "bucketKeyEnabled": Arg("BucketKeyEnabled"),
        }),
    }  # fmt: skip

    def request(self, props: Props) -> Props:
        rules = []
        for rule in props["rules"]:
            default = rule.get("applyServerSideEncryptionByDefault", {})
            made: Props = {"BucketKeyEnabled": rule.get("bucketKeyEnabled", False)}
            if default:
                made["ApplyServerSideEncryptionByDefault"] = _given(
                    SSEAlgorithm=default["sseAlgorithm"], KMSMasterKeyID=default.get("kmsMasterKeyId")
                )
            rules.append(made)
        return {"ServerSideEncryptionConfiguration": {"Rules": rules}}

    def answer(self, found: Props) -> Props:
        rules = []
        for rule in found["ServerSideEncryptionConfiguration"]["Rules"]:
            default = rule.get("ApplyServerSideEncryptionByDefault", {})
            by_default = _given(sseAlgorithm=default.get("SSEAlgorithm"), kmsMasterKeyId=default.get("KMSMasterKeyID"))
            rules.append({"applyServerSideEncryptionByDefault": by_default,
                          "bucketKeyEnabled": rule.get("BucketKeyEnabled", False)})  # fmt: skip
        return {"rules": rules}


class BucketPublicAccessBlock(Setting):
    token = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
    put, get, remove = "put_public_access_block", "get_public_access_block", "delete_public_access_block"
    names: ClassVar = {
        "blockPublicAcls": "BlockPublicAcls",
        "blockPublicPolicy": "BlockPublicPolicy",
        "ignorePublicAcls": "IgnorePublicAcls",
        "restrictPublicBuckets": "RestrictPublicBuckets",
    }
    args: ClassVar = {
        "bucket": _BUCKET,
        **{name: Arg(f"PublicAccessBlockConfiguration/{key}") for name, key in names.items()},
    }

    def request(self, props: Props) -> Props:
        return {"PublicAccessBlockConfiguration": {key: props.get(name, False) for name, key in self.names.items()}}

    def answer(self, found: Props) -> Props:
        return {name: found["PublicAccessBlockConfiguration"][key] for name, key in self.names.items()}


class BucketOwnershipControls(Setting):
    token = "aws:s3/bucketOwnershipControls:BucketOwnershipControls"
    put, get = "put_bucket_ownership_controls", "get_bucket_ownership_controls"
    remove = "delete_bucket_ownership_controls"
    args: ClassVar = {
        "bucket": _BUCKET,
        "rule": Arg("OwnershipControls/Rules", required=True,
                    of={"objectOwnership": Arg("ObjectOwnership", required=True)}),
    }  # fmt: skip

    def request(self, props: Props) -> Props:
        return {"OwnershipControls": {"Rules": [{"ObjectOwnership": props["rule"]["objectOwnership"]}]}}

    def answer(self, found: Props) -> Props:
        return {"rule": {"objectOwnership": found["OwnershipControls"]["Rules"][0]["ObjectOwnership"]}}


class BucketPolicy(Setting):
    token = "aws:s3/bucketPolicy:BucketPolicy"
    cfn = "AWS::S3::BucketPolicy"
    put, get, remove = "put_bucket_policy", "get_bucket_policy", "delete_bucket_policy"
    args: ClassVar = {
        "bucket": Arg("Bucket", required=True),
        "policy": Arg("PolicyDocument", required=True, document=True),
    }

    def request(self, props: Props) -> Props:
        return {"Policy": props["policy"]}

    def answer(self, found: Props) -> Props:
        return {"policy": found["Policy"]}


class BucketLogging(Setting):
    token = "aws:s3/bucketLogging:BucketLogging"
    put, get, remove = "put_bucket_logging", "get_bucket_logging", None
    args: ClassVar = {
        "bucket": _BUCKET,
        "targetBucket": Arg("LoggingConfiguration/DestinationBucketName", required=True),
        "targetPrefix": Arg("LoggingConfiguration/LogFilePrefix", required=True),
    }

    def request(self, props: Props) -> Props:
        enabled = {"TargetBucket": props["targetBucket"], "TargetPrefix": props["targetPrefix"]}
        return {"BucketLoggingStatus": {"LoggingEnabled": enabled}}

    def answer(self, found: Props) -> Props:
        enabled = found.get("LoggingEnabled")
        if not enabled:
            return {}
        return {"targetBucket": enabled["TargetBucket"], "targetPrefix": enabled["TargetPrefix"]}

    def delete(self, aws: Aws, identity: str, props: Props) -> None:
        aws("s3", self.put, Bucket=identity, BucketLoggingStatus={})


def _given(**values: Any) -> Props:
    return {k: v for k, v in values.items() if v is not None}


TYPES: tuple[Resource, ...] = (
    Bucket(), BucketVersioning(), BucketEncryption(), BucketPublicAccessBlock(), BucketOwnershipControls(),
    BucketPolicy(), BucketLogging(),
)  # fmt: skip
