"""What all tests share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


def pytest_collection_finish() -> None:
    """The SDKs' millions of objects live to the end; walking them at every collection took a fifth of all time.

    So the collector runs between files only, over what the last one left.
    """
    gc.collect()
    gc.freeze()
    gc.disable()


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    yield
    gc.collect()
    gc.freeze()
