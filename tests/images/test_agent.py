"""The loop: the taint goes only after verified weights, failures are tried again, status tells the truth."""

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from weight_cache.agent import Agent, Timing
from weight_cache.cache import Cache
from weight_cache.errors import AccessError, NodeError, PodError
from weight_cache.layout import Layout
from weight_cache.progress import Progress
from weight_cache.status import LONGEST_SILENCE, Status, serve
from weight_cache.store import ObjectStore
from weight_cache.taint import DEFAULT_TAINT, lift_taint

from .stand_ins import MemoryApi, MemoryStore

FILES = {"config.json": b"{}", "model.safetensors": b"w" * 3000}
COLD = {"key": DEFAULT_TAINT, "value": "true", "effect": "NoSchedule"}
QUICK = Timing(first_retry=0.01, longest_retry=0.02, watch=0.02)


class Rig:
    """An agent with everything around it in memory."""

    def __init__(self, root: Path) -> None:
        self.store = MemoryStore()
        self.store.publish("models", "r1", FILES)
        self.api = MemoryApi([COLD])
        self.stop = threading.Event()
        self.status = Status("r1", Progress())
        self.cache = Cache(Layout(root, "r1"), parallel=2, part_bytes=1024, stop=self.stop)
        self.connect: Callable[[], ObjectStore] = lambda: self.store
        self.keep_costs: Callable[[], int] | None = None
        self.thread: threading.Thread | None = None

    def _connect(self) -> ObjectStore:
        return self.connect()  # tests replace it while the agent runs

    def agent(self) -> Agent:
        return Agent(
            self.cache,
            self._connect,
            "models",
            open_node=partial(lift_taint, self.api, "n1", DEFAULT_TAINT, self.stop, pause=0),
            keep_costs=self.keep_costs,
            status=self.status,
            stop=self.stop,
            timing=QUICK,
        )

    def start(self) -> None:
        self.thread = threading.Thread(target=self.agent().run, daemon=True)
        self.thread.start()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end, "not within 60 s"
            time.sleep(0.005)

    @property
    def tainted(self) -> bool:
        return COLD in self.api.node["spec"]["taints"]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.stop.set()
    if made.thread is not None:
        made.thread.join(60)
        assert not made.thread.is_alive()


def test_once_fills_then_opens_the_node(rig: Rig) -> None:
    rig.agent().run(once=True)
    assert rig.cache.layout.ready.exists()
    assert not rig.tainted
    assert rig.status.ready
    assert rig.status.taint_lifted


def test_the_taint_stays_while_an_object_is_damaged(rig: Rig) -> None:
    good = rig.store.objects["models/r1/model.safetensors"]
    rig.store.objects["models/r1/model.safetensors"] = b"v" + good[1:]
    rig.start()
    rig.wait_for(lambda: rig.status.failures["checksum"] >= 3)
    assert rig.tainted
    assert rig.api.patches == []
    assert not rig.status.ready
    rig.store.objects["models/r1/model.safetensors"] = good
    rig.wait_for(lambda: rig.status.taint_lifted)
    assert not rig.tainted


def test_access_denied_is_counted_and_tried_again(rig: Rig) -> None:
    def refused() -> ObjectStore:
        raise AccessError("s3://b/k: access denied")

    rig.connect = refused
    rig.start()
    rig.wait_for(lambda: rig.status.failures["access_denied"] >= 2)
    assert rig.tainted
    rig.connect = lambda: rig.store
    rig.wait_for(lambda: not rig.tainted)


def test_weights_are_not_fetched_again_when_only_the_node_fails(rig: Rig) -> None:
    rig.api.status = 403
    rig.start()
    rig.wait_for(lambda: rig.status.failures[NodeError.reason] >= 3)
    assert rig.status.ready
    assert not rig.status.taint_lifted
    fetched = len(rig.store.fetched)
    rig.api.status = None
    rig.wait_for(lambda: not rig.tainted)
    assert len(rig.store.fetched) == fetched


def test_a_warm_restart_needs_no_store(rig: Rig) -> None:
    rig.agent().run(once=True)
    rig.store.objects.clear()
    rig.api.node["spec"]["taints"] = [COLD]
    rig.agent().run(once=True)
    assert not rig.tainted


def test_a_vanished_ready_is_repaired(rig: Rig) -> None:
    rig.start()
    rig.wait_for(lambda: rig.status.taint_lifted)
    rig.cache.layout.ready.unlink()
    rig.wait_for(lambda: rig.cache.layout.ready.exists() and rig.status.ready)


def _get(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_status_over_http(rig: Rig) -> None:
    server = serve(rig.status, "127.0.0.1", 0)
    port = int(server.server_address[1])
    try:
        assert _get(port, "/healthz")[0] == 200
        assert _get(port, "/readyz")[0] == 503
        rig.agent().run(once=True)
        assert _get(port, "/readyz") == (200, "ready\n")
        status, text = _get(port, "/metrics")
        assert status == 200
        assert 'weight_cache_ready{revision="r1"} 1' in text
        assert "weight_cache_taint_lifted 1" in text
        assert 'weight_cache_phase{phase="ready"} 1' in text
        rig.status.progress._beat -= LONGEST_SILENCE + 1
        assert _get(port, "/healthz")[0] == 503
        assert _get(port, "/nothing")[0] == 404
    finally:
        server.shutdown()
        server.server_close()


def test_deletion_costs_are_kept_only_on_an_open_node_and_their_failure_closes_nothing(rig: Rig) -> None:
    tainted_when_called: list[bool] = []

    def keep() -> int:
        tainted_when_called.append(rig.tainted)
        raise PodError("list pods: HTTP 403")

    rig.keep_costs = keep
    rig.start()
    rig.wait_for(lambda: rig.status.failures["pod_api"] >= 3)
    assert not any(tainted_when_called)
    assert rig.status.ready
    assert rig.status.phase == "ready"
    assert rig.status.attempts == 1
