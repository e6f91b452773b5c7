"""What `pulumi up` runs."""

import gc
import sys

gc.disable()  # what the SDK imports lives until the end: walking it takes a quarter of the time
sys.path[:] = [entry for entry in sys.path if entry.rstrip("/") != __file__.rpartition("/")[0]]  # platform is Python's

from srvmod.infra.program import program  # noqa: E402

program()
