"""Where weights are kept, who reads them, and where the image of their cache lies."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.documents import trust, weights
from srvmod.infra.aws.documents.statements import to_json
from srvmod.infra.aws.encryption_key import EncryptionKey, EncryptionKeyArgs
from srvmod.infra.aws.names import Account, Names
from srvmod.infra.aws.private_bucket import PrivateBucket, PrivateBucketArgs
from srvmod.infra.aws.role import Role, RoleArgs

KEPT_IMAGES = 20
EARLIER_DAYS = 30
"""How long an overwritten or deleted object can be had back."""


@dataclass(frozen=True)
class WeightsArgs:
    """`log_bucket` takes the access logs of `bucket`; `prefix` is the key prefix of all revisions, without slashes at
    its ends; `repository` names the store of the cache's image; `force_destroy` lets the buckets go together with their
    objects (never in production); `protect` refuses changes that would replace the bucket."""

    names: Names
    account: Account
    cluster_name: pulumi.Input[str]
    bucket: str
    log_bucket: str
    log_retention_days: int
    prefix: str
    repository: str
    namespace: str
    service_account: str
    force_destroy: bool = False
    protect: bool = False


class Weights(pulumi.ComponentResource):
    """The weights bucket, its key, the reader role of the cache's service account, and the cache's image store.

    Objects are versioned and encrypted with a key of their own; only the cache's pods read them.
    """

    bucket: str
    bucket_arn: pulumi.Output[str]
    key_arn: pulumi.Output[str]
    reader_role_arn: pulumi.Output[str]
    repository_url: pulumi.Output[str]

    def __init__(self, name: str, args: WeightsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:Weights", name, None, opts)
        self._name, self._args = name, args
        self._child = pulumi.ResourceOptions(parent=self)
        self.bucket = args.bucket
        key = EncryptionKey(f"{name}-key", EncryptionKeyArgs(args.names, args.account, "weights"), self._child)
        self.key_arn = key.arn
        self.bucket_arn = self._bucket()
        self.reader_role_arn = self._reader()
        self.repository_url = self._repository()
        self.register_outputs(
            {
                "bucket": self.bucket,
                "bucketArn": self.bucket_arn,
                "keyArn": self.key_arn,
                "readerRoleArn": self.reader_role_arn,
                "repositoryUrl": self.repository_url,
            }
        )

    def _bucket(self) -> pulumi.Output[str]:
        name, args = self._name, self._args
        logs = PrivateBucket(
            f"{name}-logs",
            PrivateBucketArgs(
                args.names,
                "access-logs",
                args.log_bucket,
                weights.log_bucket_policy(args.account, args.log_bucket, args.bucket),
                # S3 delivers access logs only to buckets under its own key.
                key_arn=None,
                expire_days=args.log_retention_days,
                earlier_days=EARLIER_DAYS,
                # It is never empty: deleting what it belongs to writes the last logs. Taking a stack away is decided by
                # lifting its protection; from then on the logs go, too.
                force_destroy=args.force_destroy or not args.protect,
            ),
            self._child,
        )
        bucket = PrivateBucket(
            name,
            PrivateBucketArgs(
                args.names,
                "weights",
                args.bucket,
                weights.bucket_policy(args.account, args.bucket),
                key_arn=self.key_arn,
                earlier_days=EARLIER_DAYS,
                force_destroy=args.force_destroy,
                protect=args.protect,
            ),
            self._child,
        )
        aws.s3.BucketLogging(
            name,
            bucket=bucket.bucket,
            target_bucket=logs.bucket,
            target_prefix=weights.LOG_PREFIX,
            opts=pulumi.ResourceOptions(parent=self, depends_on=[logs.ready]),
        )
        return bucket.arn

    def _reader(self) -> pulumi.Output[str]:
        args = self._args
        policy = self.key_arn.apply(
            lambda key: to_json(weights.reader_policy(args.account, args.bucket, args.prefix, key))
        )
        role = Role(
            f"{self._name}-reader",
            RoleArgs(
                args.names,
                "weights-reader",
                "Reads model weights",
                trust.pod_identity(),
                policies={"read": policy},
            ),
            self._child,
        )
        aws.eks.PodIdentityAssociation(
            f"{self._name}-reader",
            cluster_name=args.cluster_name,
            namespace=args.namespace,
            service_account=args.service_account,
            role_arn=role.arn,
            tags=args.names.tags("weights-identity"),
            opts=self._child,
        )
        return role.arn

    def _repository(self) -> pulumi.Output[str]:
        name, args = self._name, self._args
        repository = aws.ecr.Repository(
            name,
            name=args.repository,
            image_tag_mutability="IMMUTABLE",
            image_scanning_configuration=aws.ecr.RepositoryImageScanningConfigurationArgs(scan_on_push=True),
            encryption_configurations=[
                aws.ecr.RepositoryEncryptionConfigurationArgs(encryption_type="KMS", kms_key=self.key_arn)
            ],
            force_delete=args.force_destroy,
            tags=args.names.tags("weight-cache"),
            opts=self._child,
        )
        aws.ecr.LifecyclePolicy(
            name,
            repository=repository.name,
            policy=to_json(weights.image_lifecycle(KEPT_IMAGES)),
            opts=self._child,
        )
        return repository.repository_url
