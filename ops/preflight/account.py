"""Questions to an AWS account: a fixed list of read-only calls, each with the IAM action that it needs."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError

from srvmod.contract.account_needs import AccountNeeds

PERMISSIONS: Mapping[tuple[str, str], str] = {
    ("sts", "get_caller_identity"): "sts:GetCallerIdentity",
    ("ec2", "describe_regions"): "ec2:DescribeRegions",
    ("ec2", "describe_availability_zones"): "ec2:DescribeAvailabilityZones",
    ("ec2", "describe_instance_type_offerings"): "ec2:DescribeInstanceTypeOfferings",
    ("ec2", "describe_instance_types"): "ec2:DescribeInstanceTypes",
    ("ec2", "describe_instances"): "ec2:DescribeInstances",
    ("ec2", "describe_addresses"): "ec2:DescribeAddresses",
    ("ec2", "describe_vpcs"): "ec2:DescribeVpcs",
    ("ec2", "describe_subnets"): "ec2:DescribeSubnets",
    ("ec2", "describe_images"): "ec2:DescribeImages",
    ("ec2", "describe_capacity_reservations"): "ec2:DescribeCapacityReservations",
    ("service-quotas", "get_service_quota"): "servicequotas:GetServiceQuota",
    ("service-quotas", "get_aws_default_service_quota"): "servicequotas:GetAWSDefaultServiceQuota",
    ("ssm", "get_parameter"): "ssm:GetParameter",
    ("eks", "describe_cluster"): "eks:DescribeCluster",
    ("eks", "describe_cluster_versions"): "eks:DescribeClusterVersions",
    ("eks", "describe_addon_versions"): "eks:DescribeAddonVersions",
    ("s3", "list_objects_v2"): "s3:ListBucket",
    ("s3", "get_object"): "s3:GetObject",
    ("kms", "describe_key"): "kms:DescribeKey",
    ("kms", "get_key_rotation_status"): "kms:GetKeyRotationStatus",
    ("iam", "get_role"): "iam:GetRole",
    ("iam", "get_user"): "iam:GetUser",
    ("iam", "list_roles"): "iam:ListRoles",
    ("secretsmanager", "describe_secret"): "secretsmanager:DescribeSecret",
    ("acm", "describe_certificate"): "acm:DescribeCertificate",
}
"""Everything that preflight may ask, by boto3's names."""


def policy(needs: AccountNeeds) -> dict[str, Any]:
    """The IAM policy with which all of preflight's questions are answered: reads only."""
    arn = f"arn:{boto3.Session().get_partition_for_region(needs.region)}"
    bucket = f"{arn}:s3:::{needs.weights.bucket}"
    secret = f"{arn}:secretsmanager:{needs.region}:{needs.account_id}:secret:{needs.api_keys_secret}-??????"
    own = {"s3:ListBucket": bucket, "s3:GetObject": f"{bucket}/*", "secretsmanager:DescribeSecret": secret}
    others = sorted({action for action in PERMISSIONS.values() if action not in own})
    statements: list[dict[str, Any]] = [{"Sid": "Reads", "Effect": "Allow", "Action": others, "Resource": "*"}]
    statements += [
        {"Sid": action.partition(":")[2], "Effect": "Allow", "Action": [action], "Resource": resource}
        for action, resource in own.items()
    ]
    return {"Version": "2012-10-17", "Statement": statements}


DENIED = {
    "AccessDenied",
    "AccessDeniedException",
    "AccessDeniedForDependencyException",
    "AuthorizationError",
    "Forbidden",
    "403",
    "UnauthorizedOperation",
}
THROTTLED = {
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "TooManyRequestsException",
}
UNKNOWN_CREDENTIALS = {
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
    "AuthFailure",
}


class NoAnswerError(Exception):
    """The account didn't answer: why, what to do, and the missing permission if that is why."""

    def __init__(self, why: str, do: str, permission: str | None = None) -> None:
        super().__init__(why)
        self.why, self.do, self.permission = why, do, permission


class CredentialsError(NoAnswerError):
    """There are no credentials, or AWS doesn't take them."""


class RefusedError(NoAnswerError):
    """AWS refused the request for a reason of its own, such as a thing that doesn't exist."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{code}: {message}", "see the message; ask again")
        self.code = code


class Account:
    """The account that the environment's credentials (boto3's usual places) lead to, in one region."""

    def __init__(self, region: str, session: boto3.Session | None = None, attempts: int = 5) -> None:
        self.region = region
        self._session = session or boto3.Session()
        retries: Any = {"mode": "standard", "total_max_attempts": attempts}
        self._config = Config(region_name=region, retries=retries, connect_timeout=5, read_timeout=20)
        self.client = lru_cache(maxsize=None)(self._client)

    def _client(self, service: str) -> Any:
        client: Any = self._session.client(service, config=self._config)  # pyright: ignore[reportCallIssue, reportArgumentType, reportUnknownMemberType]
        return client

    def ask(self, service: str, operation: str, **params: Any) -> Mapping[str, Any]:
        """The answer to one call. Raises NoAnswerError; KeyError for a call that isn't in PERMISSIONS."""
        permission = PERMISSIONS[service, operation]
        try:
            answer: Mapping[str, Any] = getattr(self.client(service), operation)(**params)
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise CredentialsError(str(error), "aws sso login, or set AWS_PROFILE") from error
        except ClientError as error:
            raise _no_answer(error, permission) from error
        except BotoCoreError as error:
            why = f"{service} in {self.region} can't be reached: {error}"
            raise NoAnswerError(why, "check network, proxy and region; ask again") from error
        return answer

    def all(self, service: str, operation: str, key: str, **params: Any) -> list[Any]:
        """The items of all pages under `key`."""
        token_in, token_out = _TOKENS.get((service, operation), ("NextToken", "NextToken"))
        found: list[Any] = []
        more: dict[str, Any] = {}
        while True:
            answer = self.ask(service, operation, **params, **more)
            found += answer.get(key, [])
            token = answer.get(token_out)
            if not token:
                return found
            more = {token_in: token}


_TOKENS = {
    ("s3", "list_objects_v2"): ("ContinuationToken", "NextContinuationToken"),
    ("eks", "describe_addon_versions"): ("nextToken", "nextToken"),
    ("iam", "list_roles"): ("Marker", "Marker"),
}
"""Request's and answer's names of the page token, where they aren't NextToken."""


def _no_answer(error: ClientError, permission: str) -> NoAnswerError:
    code = str(error.response.get("Error", {}).get("Code", ""))
    message = str(error.response.get("Error", {}).get("Message", ""))
    if code in DENIED:
        named = re.search(r"not authorized to perform: ([a-z0-9-]+:[A-Za-z0-9]+)", message)
        action = named[1] if named else permission
        return NoAnswerError(f"denied: {action}", f"allow {action} to whoever runs this, or ask who may", action)
    if code in THROTTLED:
        return NoAnswerError(f"throttled by AWS ({code})", "wait a minute and ask again")
    if code in UNKNOWN_CREDENTIALS:
        return CredentialsError(f"{code}: {message}", "aws sso login, or set AWS_PROFILE")
    return RefusedError(code, message)
