"""Reading objects. The protocol is small, so that a faster client can take botocore's place."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from weight_cache.errors import AccessError, CacheError, ChangedObjectError, MissingObjectError, NetworkError

Writer = Callable[[bytes], None]
"""Takes the bytes of a range in order."""


@dataclass(frozen=True)
class ObjectInfo:
    """Size in bytes, and the tag that changes when the content does."""

    size: int
    etag: str


class ObjectStore(Protocol):
    """One bucket. Every method raises a CacheError that says what to do about it."""

    def address(self, key: str) -> str:
        """How to name an object in a message."""
        ...

    def read(self, key: str, limit: int) -> bytes:
        """A whole small object; refuses more than `limit` bytes."""
        ...

    def info(self, key: str) -> ObjectInfo:
        """Size and tag of an object."""
        ...

    def read_range(self, key: str, etag: str, start: int, length: int, write: Writer) -> None:
        """Hand bytes `start` … `start + length - 1` to `write`, if the object still has that tag."""
        ...


class S3Store:
    """A bucket in S3, through botocore (default credential chain: pod identity, IRSA, environment)."""

    def __init__(self, bucket: str, *, connections: int, block: int = 2**20) -> None:
        import botocore.config
        import botocore.session

        self.bucket = bucket
        self._block = block
        session = botocore.session.get_session()
        self._client: Any = session.create_client(
            "s3",
            config=botocore.config.Config(
                max_pool_connections=connections,
                connect_timeout=5,
                read_timeout=30,
                retries={"mode": "standard", "max_attempts": 3},
                # Path style works with every endpoint override; virtual hosts need names that resolve.
                s3={"addressing_style": "path" if _has_override(session) else "auto"},
                # The manifest's SHA-256 is checked over the whole file; S3's own checksums don't fit ranges.
                response_checksum_validation="when_required",
            ),
        )

    def address(self, key: str) -> str:
        """s3://bucket/key."""
        return f"s3://{self.bucket}/{key}"

    def read(self, key: str, limit: int) -> bytes:
        """See ObjectStore."""
        answer = self._call(key, "get_object", Key=key)
        body = self._body(key, answer["Body"], limit + 1)
        if len(body) > limit:
            raise CacheError(f"{self.address(key)}: larger than {limit} bytes, which no manifest is")
        return body

    def info(self, key: str) -> ObjectInfo:
        """See ObjectStore."""
        answer = self._call(key, "head_object", Key=key)
        return ObjectInfo(int(answer["ContentLength"]), str(answer["ETag"]))

    def read_range(self, key: str, etag: str, start: int, length: int, write: Writer) -> None:
        """See ObjectStore."""
        answer = self._call(key, "get_object", Key=key, IfMatch=etag, Range=f"bytes={start}-{start + length - 1}")
        got = 0
        while got < length:
            block = self._body(key, answer["Body"], min(self._block, length - got))
            if not block:
                raise NetworkError(f"{self.address(key)}: the answer ended {length - got} bytes early")
            write(block)
            got += len(block)

    def _body(self, key: str, body: Any, amount: int) -> bytes:
        import botocore.exceptions
        import urllib3.exceptions

        try:
            return bytes(body.read(amount))
        except (
            botocore.exceptions.BotoCoreError,
            urllib3.exceptions.HTTPError,
            ConnectionError,
            TimeoutError,
        ) as error:
            raise NetworkError(f"{self.address(key)}: broke off: {error}") from None

    def _call(self, key: str, operation: str, **arguments: Any) -> Any:
        import botocore.exceptions

        try:
            return getattr(self._client, operation)(Bucket=self.bucket, **arguments)
        except botocore.exceptions.ClientError as error:
            raise self._translate(key, error) from None
        except botocore.exceptions.NoCredentialsError:
            raise AccessError(
                f"{self.address(key)}: no AWS credentials; the pod's service account needs a pod identity association "
                "with the weights reader role"
            ) from None
        except botocore.exceptions.BotoCoreError as error:
            raise NetworkError(f"{self.address(key)}: {error}") from None

    def _translate(self, key: str, error: Any) -> CacheError:
        detail = error.response.get("Error", {})
        code = str(detail.get("Code", ""))
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        address = self.address(key)
        if code in {"NoSuchKey", "NoSuchBucket", "404", "NotFound"} or status == 404:
            what = "no such bucket" if code == "NoSuchBucket" else "no such object"
            return MissingObjectError(
                f"{address}: {what}; check bucket, prefix and revision, and that it was published"
            )
        if code == "PreconditionFailed" or status == 412:
            return ChangedObjectError(
                f"{address}: it changed during the download; a published revision must not change"
            )
        if status == 403:
            return AccessError(
                f"{address}: access denied ({code}); the role needs s3:GetObject on the prefix "
                "and kms:Decrypt on the key"
            )
        return NetworkError(f"{address}: {code} {detail.get('Message', '')} (HTTP {status})")


def _has_override(session: Any) -> bool:
    """Whether the environment or the profile sends S3's calls elsewhere; botocore has no variable for both."""
    named = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return any(os.environ.get(name) for name in named) or bool(session.get_scoped_config().get("endpoint_url"))
