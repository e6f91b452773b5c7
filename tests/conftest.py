"""What all tests share."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

_file: Path | None = None


def pytest_collection_finish() -> None:
    """The SDKs' millions of objects live to the end; walking them at every collection took a quarter of all time.

    So the collector runs between files only, over what the last one left.
    """
    gc.collect()
    gc.freeze()
    gc.disable()


def pytest_runtest_setup(item: pytest.Item) -> None:
    global _file
    if item.path != _file:
        _file = item.path
        gc.collect()
        gc.freeze()
