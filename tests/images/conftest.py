"""The agent is a package of its own image: its folder is put on the path for these tests only."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parents[2] / "images" / "weight-cache"))

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("srvmod", deadline=None)
settings.load_profile("srvmod")
