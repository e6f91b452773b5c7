"""What goes from a bucket by itself."""

from __future__ import annotations

from typing import Any, ClassVar

from srvmod.local.providers.aws.base import Arg, Resource
from srvmod.local.providers.aws.s3 import Setting
from srvmod.local.providers.values import Props


class BucketLifecycleConfiguration(Setting):
    token = "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration"
    put, get = "put_bucket_lifecycle_configuration", "get_bucket_lifecycle_configuration"
    remove = "delete_bucket_lifecycle"
    args: ClassVar = {
        "bucket": Arg("BucketName", required=True),
        "rules": Arg("LifecycleConfiguration/Rules", required=True, of={
            "id": Arg("Id", required=True),
            "status": Arg("Status", required=True),
            "filter": Arg(of={"prefix": Arg()}),
            "abortIncompleteMultipartUpload": Arg("AbortIncompleteMultipartUpload", of={
                "daysAfterInitiation": Arg("DaysAfterInitiation", required=True)}),
            "expiration": Arg(of={"days": Arg()}),
            "noncurrentVersionExpiration": Arg("NoncurrentVersionExpiration", of={
                "noncurrentDays": Arg("NoncurrentDays", required=True)}),
        }),
    }  # fmt: skip
    absent = ("expectedBucketOwner", "transitionDefaultMinimumObjectSize")

    def request(self, props: Props) -> Props:
        return {"LifecycleConfiguration": {"Rules": [_rule(rule) for rule in props["rules"]]}}

    def answer(self, found: Props) -> Props:
        return {"rules": [_read(rule) for rule in found["Rules"]]}


_BLOCKS = {
    "abortIncompleteMultipartUpload": ("AbortIncompleteMultipartUpload", "daysAfterInitiation", "DaysAfterInitiation"),
    "expiration": ("Expiration", "days", "Days"),
    "noncurrentVersionExpiration": ("NoncurrentVersionExpiration", "noncurrentDays", "NoncurrentDays"),
}
"""Pulumi's block → S3's block, and the name of the one number in each."""


def _rule(rule: Props) -> Props:
    made: Props = {
        "ID": rule["id"],
        "Status": rule["status"],
        "Filter": {"Prefix": rule.get("filter", {}).get("prefix", "")},
    }
    return made | {block: {key: rule[name][own]} for name, (block, own, key) in _BLOCKS.items() if name in rule}


def _read(rule: Any) -> Props:
    found: Props = {
        "id": rule["ID"],
        "status": rule["Status"],
        "filter": {"prefix": rule.get("Filter", {}).get("Prefix", "")},
    }
    return found | {name: {own: rule[block][key]} for name, (block, own, key) in _BLOCKS.items() if block in rule}


TYPES: tuple[Resource, ...] = (BucketLifecycleConfiguration(),)
