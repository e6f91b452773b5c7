"""The S3 client against moto, in process."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from weight_cache.errors import AccessError, CacheError, ChangedObjectError, MissingObjectError, NetworkError
from weight_cache.store import S3Store

DATA = bytes(range(256)) * 40


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        client = boto3.client("s3", region_name="us-east-1")
        client.create_bucket(Bucket="weights")
        client.put_object(Bucket="weights", Key="p/a", Body=DATA)
        yield client


def test_info_and_ranges(s3: Any) -> None:
    store = S3Store("weights", connections=2, block=1000)
    info = store.info("p/a")
    assert info.size == len(DATA)
    got: list[bytes] = []
    store.read_range("p/a", info.etag, 100, 5000, got.append)
    assert b"".join(got) == DATA[100:5100]
    assert len(got) > 1
    assert store.read("p/a", 20_000) == DATA


def test_errors_are_named(s3: Any) -> None:
    store = S3Store("weights", connections=2)
    with pytest.raises(MissingObjectError, match="s3://weights/p/none"):
        store.info("p/none")
    with pytest.raises(MissingObjectError, match="no such object"):
        store.read("p/none", 10)
    with pytest.raises(MissingObjectError):
        S3Store("nobody", connections=2).read("p/a", 10)
    with pytest.raises(CacheError, match="larger than 10 bytes"):
        store.read("p/a", 10)
    with pytest.raises(ChangedObjectError, match="must not change"):
        store.read_range("p/a", '"other"', 0, 10, lambda block: None)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [("AccessDenied", 403, AccessError), ("SlowDown", 503, NetworkError), ("NoSuchBucket", 404, MissingObjectError)],
)
def test_answers_are_translated(
    s3: Any, monkeypatch: pytest.MonkeyPatch, code: str, status: int, kind: type[CacheError]
) -> None:
    from botocore.exceptions import ClientError

    store = S3Store("weights", connections=2)

    def refuse(**_: Any) -> None:
        raise ClientError(
            {"Error": {"Code": code, "Message": "m"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "GetObject"
        )

    monkeypatch.setattr(store._client, "get_object", refuse)
    with pytest.raises(kind, match="s3://weights/p/a"):
        store.read("p/a", 10)


def test_an_unreachable_endpoint_is_a_network_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with pytest.raises(NetworkError, match=r"127\.0\.0\.1:9"):
        S3Store("weights", connections=2).read("p/a", 10)


@pytest.mark.parametrize(
    ("variable", "profile", "style"),
    [
        (None, "", "auto"),
        ("AWS_ENDPOINT_URL", "", "path"),
        ("AWS_ENDPOINT_URL_S3", "", "path"),
        (None, "endpoint_url = http://127.0.0.1:9", "path"),
    ],
)
def test_an_endpoint_of_ones_own_is_asked_by_path(
    s3: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, variable: str | None, profile: str, style: str
) -> None:
    (tmp_path / "config").write_text(f"[default]\n{profile}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    if variable:
        monkeypatch.setenv(variable, "http://127.0.0.1:9")
    client = S3Store("weights", connections=1)._client
    assert client.meta.config.s3["addressing_style"] == style
    assert (client.meta.endpoint_url == "http://127.0.0.1:9") == (style == "path")
