"""The local stack's weights: the same bytes everywhere, and a manifest that fits them."""

import hashlib
import json
from pathlib import Path
from typing import Any

from srvmod.local.engine.tiny_weights import upload, write_tiny_weights


def test_the_same_seed_gives_the_same_files(tmp_path: Path, weights: Path) -> None:
    manifest = write_tiny_weights(tmp_path / "again")
    assert manifest == json.loads((weights / "manifest.json").read_text())
    other = write_tiny_weights(tmp_path / "other", "rev-2", seed=2, shards=3)
    assert other["revision"] == "rev-2"
    assert {entry["sha256"] for entry in other["files"]} != {entry["sha256"] for entry in manifest["files"]}


def test_the_manifest_names_every_file_truthfully(weights: Path) -> None:
    manifest = json.loads((weights / "manifest.json").read_text())
    names = {path.name for path in weights.iterdir()} - {"manifest.json"}
    assert {entry["path"] for entry in manifest["files"]} == names
    total = 0
    for entry in manifest["files"]:
        data = (weights / entry["path"]).read_bytes()
        total += len(data)
        assert (len(data), hashlib.sha256(data).hexdigest()) == (entry["sizeBytes"], entry["sha256"])
    assert 1e6 < total < 2e7


def test_upload_puts_the_manifest_last(weights: Path) -> None:
    class Recorder:
        def __init__(self) -> None:
            self.keys: list[str] = []

        def put_object(self, *, Bucket: str, Key: str, Body: bytes) -> Any:  # noqa: N803 - boto3's names
            assert Bucket == "b"
            assert Body
            self.keys.append(Key)

    s3 = Recorder()
    assert upload(s3, "b", "/models/x/", weights) == s3.keys
    assert s3.keys[-1] == "models/x/tiny-1/manifest.json"
    assert "models/x/tiny-1/config.json" in s3.keys
