"""The simulated engine is a package of its own image: its folder is put on the path for these tests only."""

import sys
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parents[3] / "local" / "engine"))

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("srvmod", deadline=None)
settings.load_profile("srvmod")


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tiny weights."""
    from srvmod.local.engine.tiny_weights import write_tiny_weights

    folder = tmp_path_factory.mktemp("tiny") / "tiny-1"
    write_tiny_weights(folder)
    return folder
