"""A revision that lacks what engines load is never taken for a good one, whatever its manifest says."""

import re
import threading
from functools import partial
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws
from weight_cache import cli, manifest
from weight_cache.agent import Agent, Timing
from weight_cache.cache import Cache
from weight_cache.errors import CacheError, ManifestError
from weight_cache.layout import Layout
from weight_cache.progress import Progress
from weight_cache.status import Status
from weight_cache.taint import DEFAULT_TAINT, lift_taint

from srvmod.contract.account_needs import MODEL_FILES, WeightsNeeds
from srvmod.local.engine.tiny_weights import upload, write_tiny_weights

from .stand_ins import MemoryApi, MemoryStore

PLAIN = {"config.json": b"{}", "model-00001-of-00002.safetensors": b"w" * 3000}
DRAFT = {"draft/config.json": b"{}", "draft/model.safetensors": b"d" * 2000}
REQUIRED = ("config.json", "*.safetensors", "draft/config.json", "draft/*.safetensors")
COLD = {"key": DEFAULT_TAINT, "value": "true", "effect": "NoSchedule"}


def _store(files: dict[str, bytes]) -> MemoryStore:
    made = MemoryStore()
    made.publish("models", "r1", files)
    return made


def _cache(root: Path, required: tuple[str, ...] = REQUIRED) -> Cache:
    return Cache(Layout(root, "r1"), parallel=2, part_bytes=1024, stop=threading.Event(), required=required)


@pytest.mark.parametrize(
    ("names", "absent"),
    [
        ([*PLAIN, *DRAFT], []),
        ([*PLAIN], ["draft/config.json", "draft/*.safetensors"]),
        ([*PLAIN, "draft/config.json"], ["draft/*.safetensors"]),
        ([*DRAFT], ["config.json", "*.safetensors"]),
        ([*PLAIN, *DRAFT, "draft/model.safetensors.index.json"], []),
        (["config.json", "model.safetensors.index.json", *DRAFT], ["*.safetensors"]),
        (["Config.json", "model.safetensors", *DRAFT], ["config.json"]),
        ([*PLAIN, "draft/sub/config.json", "draft/sub/a.safetensors"], ["draft/config.json", "draft/*.safetensors"]),
        ([*PLAIN, *(f"other/{name}" for name in DRAFT)], ["draft/config.json", "draft/*.safetensors"]),
    ],
)
def test_agent_and_preflight_find_the_same_files_lacking(names: list[str], absent: list[str]) -> None:
    entries = tuple(manifest.FileEntry(name, 1, "0" * 64) for name in names)
    assert manifest.lacking(manifest.Manifest("r1", entries, "", b""), REQUIRED) == absent
    assert WeightsNeeds(bucket="b", prefix="p", revision="r1", required=REQUIRED).lacking(names) == absent
    assert manifest.MODEL_FILES == MODEL_FILES


@pytest.mark.parametrize("left_out", ["config.json", "*.safetensors", "draft/config.json", "draft/*.safetensors"])
def test_what_is_lacking_is_named_before_anything_is_fetched(tmp_path: Path, left_out: str) -> None:
    whole = PLAIN | DRAFT
    kept = {name: data for name, data in whole.items() if not re.fullmatch(left_out.replace("*", "[^/]*"), name)}
    assert len(kept) == len(whole) - 1
    store, cache = _store(kept), _cache(tmp_path)
    with pytest.raises(ManifestError) as caught:
        cache.fill(store, "models", Progress())
    assert f"models/r1/manifest.json: it doesn't list {left_out}, which engines need" in str(caught.value)
    assert store.fetched == []
    assert [*tmp_path.iterdir()] == []


def test_a_revision_in_place_that_lacks_the_draft_stays_until_its_bucket_has_one(tmp_path: Path) -> None:
    """Speculation is switched on for a revision that the node verified without it."""
    store, cache = _store(PLAIN), _cache(tmp_path)
    _cache(tmp_path, MODEL_FILES).fill(store, "models", Progress())
    store.fetched.clear()
    assert cache.verify(Progress(), full=False) is None
    with pytest.raises(ManifestError, match=r"draft/config\.json"):
        cache.fill(store, "models", Progress())
    assert cache.layout.ready.exists(), "engines without a draft model still run from it"
    store.publish("models", "r1", PLAIN | DRAFT)
    cache.fill(store, "models", Progress())
    assert {key for key, _ in store.fetched} == {f"models/r1/{name}" for name in DRAFT}
    assert cache.verify(Progress(), full=True) is not None


def test_the_taint_stays_until_the_manifest_lists_the_draft(tmp_path: Path) -> None:
    class Told(Agent):
        def _failed(self, error: CacheError, failures: int) -> None:
            super()._failed(error, failures)
            tainted.append(COLD in api.node["spec"]["taints"])
            store.publish("models", "r1", PLAIN | DRAFT)

    tainted: list[bool] = []
    store, api, status, stop = _store(PLAIN), MemoryApi([COLD]), Status("r1", Progress()), threading.Event()
    open_node = partial(lift_taint, api, "n1", DEFAULT_TAINT, stop, pause=0)
    timing = Timing(first_retry=0.01)
    cache = _cache(tmp_path)
    Told(cache, lambda: store, "models", open_node=open_node, status=status, stop=stop, timing=timing).run(once=True)
    assert tainted == [True]
    assert status.failures == {"manifest": 1}
    assert COLD not in api.node["spec"]["taints"]


def test_the_command_asks_for_a_models_files_and_takes_others_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tiny_weights(tmp_path / "r1", "r1")
    monkeypatch.delenv("REQUIRED", raising=False)
    assert cli.main(["manifest", str(tmp_path / "r1")]) == 0
    assert capsys.readouterr().out
    assert cli.main(["manifest", str(tmp_path / "r1"), "--required", " ".join(REQUIRED)]) == 1
    monkeypatch.setenv("REQUIRED", " ".join(REQUIRED))
    assert cli.main(["manifest", str(tmp_path / "r1")]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("doesn't list draft/config.json, draft/*.safetensors, which engines need") == 2


def test_the_agents_command_hands_the_environments_files_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class GivesUp(Agent):
        def _failed(self, error: CacheError, failures: int) -> None:
            raise error

    monkeypatch.setattr(cli, "Agent", GivesUp)
    monkeypatch.setattr(cli.signal, "signal", lambda *_: None)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    given = {"BUCKET": "weights", "PREFIX": "m", "REVISION": "r1", "MODELS_DIR": str(tmp_path / "models"), "PORT": "0"}
    given |= {"HOST": "127.0.0.1", "REQUIRED": " ".join(REQUIRED), "AWS_DEFAULT_REGION": "us-east-1"}
    for name, value in (given | {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}).items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        s3: Any = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="weights")
        write_tiny_weights(tmp_path / "r1", "r1")
        upload(s3, "weights", "m", tmp_path / "r1")
        assert cli.main(["run", "--no-taint", "--once"]) == 1
    assert "s3://weights/m/r1/manifest.json: it doesn't list draft/config.json" in capsys.readouterr().err
