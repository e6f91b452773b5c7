"""The agent is a package of its own image: its folder is put on the path for these tests only."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "images" / "weight-cache"))
