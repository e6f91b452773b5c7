"""What `pulumi up` runs."""

import gc

gc.disable()  # what the SDK imports lives until the end: walking it takes a quarter of the time

from srvmod.infra.program import program  # noqa: E402

program()
