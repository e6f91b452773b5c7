"""An S3 bucket that nobody reaches without a policy: versioned, encrypted, closed to the public, TLS only."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.documents.statements import Document, to_json
from srvmod.infra.aws.names import Names

SSE = aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs


@dataclass(frozen=True)
class PrivateBucketArgs:
    """`bucket` is the bucket's name and `part` its own in tags; `key_arn` None means S3's own key (SSE-S3).

    Current objects expire after `expire_days`, earlier versions after `earlier_days`. `force_destroy` lets the bucket
    go together with its objects; `protect` refuses changes that would replace it.
    """

    names: Names
    part: str
    bucket: str
    policy: Document
    key_arn: pulumi.Input[str] | None = None
    expire_days: int | None = None
    earlier_days: int | None = None
    force_destroy: bool = False
    protect: bool = False


class PrivateBucket(pulumi.ComponentResource):
    """The bucket and every setting that hangs on it; `ready` exists when its policy is in place."""

    bucket: pulumi.Output[str]
    arn: pulumi.Output[str]
    ready: pulumi.Resource

    def __init__(self, name: str, args: PrivateBucketArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:PrivateBucket", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        made = aws.s3.Bucket(
            name,
            bucket=args.bucket,
            force_destroy=args.force_destroy,
            tags=args.names.tags(args.part),
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        self.bucket, self.arn = made.bucket, made.arn
        aws.s3.BucketOwnershipControls(
            name,
            bucket=self.bucket,
            rule=aws.s3.BucketOwnershipControlsRuleArgs(object_ownership="BucketOwnerEnforced"),
            opts=child,
        )
        aws.s3.BucketVersioning(
            name,
            bucket=self.bucket,
            versioning_configuration=aws.s3.BucketVersioningVersioningConfigurationArgs(status="Enabled"),
            opts=child,
        )
        own = args.key_arn is not None
        default = SSE(sse_algorithm="aws:kms" if own else "AES256", kms_master_key_id=args.key_arn)
        aws.s3.BucketServerSideEncryptionConfiguration(
            name,
            bucket=self.bucket,
            rules=[
                aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                    apply_server_side_encryption_by_default=default,
                    # One data key per bucket and time window instead of one KMS call per ranged GET.
                    bucket_key_enabled=own,
                )
            ],
            opts=child,
        )
        self._expiry(name, args, child)
        closed = aws.s3.BucketPublicAccessBlock(
            name,
            bucket=self.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=child,
        )
        self.ready = aws.s3.BucketPolicy(
            name,
            bucket=self.bucket,
            policy=to_json(args.policy),
            # S3 answers 409 when both are written at the same time.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[closed]),
        )
        self.register_outputs({"bucket": self.bucket, "arn": self.arn})

    def _expiry(self, name: str, args: PrivateBucketArgs, child: pulumi.ResourceOptions) -> None:
        """What goes by itself. Left-overs of uploads always do: they cost as much as objects and nobody sees them."""
        rule = aws.s3.BucketLifecycleConfigurationRuleArgs(
            id="expire",
            status="Enabled",
            filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=""),
            abort_incomplete_multipart_upload=(
                aws.s3.BucketLifecycleConfigurationRuleAbortIncompleteMultipartUploadArgs(days_after_initiation=7)
            ),
            expiration=(
                aws.s3.BucketLifecycleConfigurationRuleExpirationArgs(days=args.expire_days)
                if args.expire_days
                else None
            ),
            noncurrent_version_expiration=(
                aws.s3.BucketLifecycleConfigurationRuleNoncurrentVersionExpirationArgs(
                    noncurrent_days=args.earlier_days
                )
                if args.earlier_days
                else None
            ),
        )
        aws.s3.BucketLifecycleConfiguration(name, bucket=self.bucket, rules=[rule], opts=child)
