"""Access logs of a bucket: taken where the target's policy lets S3 deliver them, beside statements about everyone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from srvmod.infra.aws.documents.weights import LOG_PREFIX, log_bucket_policy
from srvmod.infra.aws.names import Account
from tests.local.simulated_aws.conftest import ACCOUNT, REGION


def test_logs_need_the_targets_consent(client: Callable[[str], Any]) -> None:
    s3 = client("s3")
    for name in ("watched", "logs"):
        s3.create_bucket(Bucket=name)
    logging = {"LoggingEnabled": {"TargetBucket": "logs", "TargetPrefix": LOG_PREFIX}}
    with pytest.raises(ClientError, match="InvalidTargetBucketForLogging"):
        s3.put_bucket_logging(Bucket="watched", BucketLoggingStatus=logging)
    policy = log_bucket_policy(Account(ACCOUNT, REGION), "logs", "watched")
    s3.put_bucket_policy(Bucket="logs", Policy=json.dumps(policy))
    s3.put_bucket_logging(Bucket="watched", BucketLoggingStatus=logging)
    assert s3.get_bucket_logging(Bucket="watched")["LoggingEnabled"]["TargetBucket"] == "logs"
    s3.put_object(Bucket="logs", Key="x", Body=b"callers are judged without the service's statement")
    elsewhere = {"LoggingEnabled": {"TargetBucket": "logs", "TargetPrefix": "elsewhere/"}}
    with pytest.raises(ClientError, match="InvalidTargetBucketForLogging"):
        s3.put_bucket_logging(Bucket="watched", BucketLoggingStatus=elsewhere)
