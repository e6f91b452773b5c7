"""The command line, and one run of the whole agent against simulated S3."""

import threading
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest
from moto import mock_aws
from weight_cache import cli

from srvmod.local.engine.tiny_weights import upload, write_tiny_weights


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("BUCKET", "PREFIX", "REVISION", "NODE_NAME", "MODELS_DIR", "AWS_ENDPOINT_URL", "VERIFY_FULL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("PORT", "0")
    monkeypatch.setenv("HOST", "127.0.0.1")
    # Handlers can't be set outside the main thread, and tests keep their own.
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)


@pytest.fixture
def bucket() -> Iterator[str]:
    with mock_aws():
        boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="weights")
        yield "weights"


def test_everything_missing_is_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main([])
    assert caught.value.code == 2
    text = capsys.readouterr().err
    for word in ("BUCKET", "REVISION", "NODE_NAME"):
        assert word in text


def test_a_bad_revision_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["run", "--bucket", "b", "--revision", "../x", "--no-taint"])
    assert "'../x'" in capsys.readouterr().err


def test_outside_a_pod_it_says_how_to_reach_the_api(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert cli.main(["run", "--bucket", "b", "--revision", "r", "--node-name", "n"]) == 1
    assert "--kubeconfig" in capsys.readouterr().err


def test_tiny_weights_arrive(tmp_path: Path, bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    wanted = write_tiny_weights(source, "tiny-1")
    upload(boto3.client("s3", region_name="us-east-1"), bucket, "models/x", source)
    monkeypatch.setenv("BUCKET", bucket)
    monkeypatch.setenv("PREFIX", "models/x")
    monkeypatch.setenv("REVISION", "tiny-1")
    monkeypatch.setenv("MODELS_DIR", str(tmp_path / "models"))
    monkeypatch.setenv("PART_MIB", "1")
    assert cli.main(["run", "--no-taint", "--once"]) == 0
    final = tmp_path / "models" / "tiny-1"
    assert (final / "READY").exists()
    for entry in wanted["files"]:
        assert (final / entry["path"]).read_bytes() == (source / entry["path"]).read_bytes()
    assert threading.active_count() < 20
