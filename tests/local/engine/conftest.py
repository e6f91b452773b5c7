"""The simulated engine is a package of its own image: its folder is put on the path for these tests only."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "local" / "engine"))


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tiny weights."""
    from srvmod.local.engine.tiny_weights import write_tiny_weights

    folder = tmp_path_factory.mktemp("tiny") / "tiny-1"
    write_tiny_weights(folder)
    return folder
