"""Who may read weights, and the bucket's and key's own policies."""

from srvmod.infra.aws.documents.statements import Document, allow, deny_insecure_transport, document
from srvmod.infra.aws.names import Account


def bucket_arn(account: Account, bucket: str) -> str:
    """ARN of a bucket (S3 ARNs carry neither region nor account)."""
    return account.arn("s3", bucket, regional=False, owned=False)


def bucket_policy(account: Account, bucket: str) -> Document:
    """TLS only; everything else is said by the roles' own policies."""
    arn = bucket_arn(account, bucket)
    return document(deny_insecure_transport("s3:*", [arn, f"{arn}/*"]))


LOG_PREFIX = "weights/"
"""Key prefix of the weights bucket's access logs."""


def log_bucket_policy(account: Account, bucket: str, source: str) -> Document:
    """S3 may deliver the access logs of `source`, for this account only; TLS only."""
    arn = bucket_arn(account, bucket)
    return document(
        allow(
            "DeliverAccessLogs",
            ["s3:PutObject"],
            [f"{arn}/{LOG_PREFIX}*"],
            principal={"Service": "logging.s3.amazonaws.com"},
            conditions={
                "ArnLike": {"aws:SourceArn": bucket_arn(account, source)},
                "StringEquals": {"aws:SourceAccount": account.id},
            },
        ),
        deny_insecure_transport("s3:*", [arn, f"{arn}/*"]),
    )


def reader_policy(account: Account, bucket: str, prefix: str, key_arn: str) -> Document:
    """Read the objects under `prefix` and decrypt them, nothing else."""
    arn = bucket_arn(account, bucket)
    return document(
        allow("ReadObjects", ["s3:GetObject"], [f"{arn}/{prefix}/*"]),
        allow(
            "ListPrefix",
            ["s3:ListBucket"],
            [arn],
            conditions={"StringLike": {"s3:prefix": [f"{prefix}/*"]}},
        ),
        allow(
            "Decrypt",
            ["kms:Decrypt"],
            [key_arn],
            conditions={"StringEquals": {"kms:ViaService": f"s3.{account.region}.amazonaws.com"}},
        ),
    )


def image_lifecycle(keep: int) -> Document:
    """ECR lifecycle: untagged images go after a week, the newest `keep` tagged ones stay."""
    return {
        "rules": [
            {
                "rulePriority": 1,
                "description": "Untagged images are left-overs of failed pushes",
                "selection": {
                    "tagStatus": "untagged",
                    "countType": "sinceImagePushed",
                    "countUnit": "days",
                    "countNumber": 7,
                },
                "action": {"type": "expire"},
            },
            {
                "rulePriority": 2,
                "description": f"Keep the newest {keep} images",
                "selection": {"tagStatus": "any", "countType": "imageCountMoreThan", "countNumber": keep},
                "action": {"type": "expire"},
            },
        ]
    }
