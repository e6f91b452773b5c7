"""Ids that come out the same when a request is played again.

moto draws every id from one shared generator. Here each thread gets a generator of its own, and the front seeds it
before each request that changes something, so that the journal can give back the very ids that were handed out.
"""

from __future__ import annotations

import os
import sys
import threading
from datetime import UTC, datetime
from random import Random
from typing import Any

import moto.core.utils
from moto.moto_api._internal import mock_random
from moto.moto_api._internal.moto_random import MotoRandom


class _Local(threading.local):
    def __init__(self) -> None:
        self.random = Random()
        self.time: datetime | None = None


_local = _Local()


class SeededPerThread(MotoRandom):
    """moto's generator, drawing from the calling thread's own source."""

    def random(self) -> float:
        return _local.random.random()

    def getrandbits(self, k: int, /) -> int:
        return _local.random.getrandbits(k)

    def seed(self, a: Any = None, version: int = 2) -> None:
        _local.random.seed(a, version)


def install() -> None:
    """Make moto draw ids per thread and read the time of the request. Idempotent.

    Its modules hold the generator object, so the object itself changes class. Its naive UTC clock is a function,
    replaced where it is defined and in every module that took it already.
    """
    mock_random.__class__ = SeededPerThread
    original = moto.core.utils.utcnow
    for name, module in list(sys.modules.items()):
        if name.startswith("moto.") and getattr(module, "utcnow", None) is original:
            module.utcnow = _naive_now  # type: ignore[attr-defined]


class SeededOs:
    """The module `os` for moto's modules that take ids or key material straight from the system."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def urandom(self, size: int) -> bytes:
        return mock_random.getrandbits(8 * size).to_bytes(size, "big")


def seed_system_randomness() -> None:
    """Multipart upload ids (S3) and key material (KMS) come from `os.urandom`; make them repeatable too."""
    import moto.kms.utils
    import moto.s3.models

    for module in (moto.kms.utils, moto.s3.models):
        module.os = SeededOs()  # type: ignore[attr-defined]


def _naive_now() -> datetime:
    return now().replace(tzinfo=None)


def begin(seed: str, at: datetime) -> None:
    """Start a request: ids follow from ``seed``, and `now` is ``at``."""
    _local.random.seed(seed)
    _local.time = at


def end() -> None:
    """The request is over: ids are random again and `now` is the clock's."""
    _local.random.seed()
    _local.time = None


def now() -> datetime:
    """The time of the current request (of its first run, when it is played again); UTC."""
    return _local.time or datetime.now(UTC)


def new_id(length: int) -> str:
    """``length`` hexadecimal digits from the request's generator."""
    return f"{mock_random.getrandbits(4 * length):0{length}x}"
