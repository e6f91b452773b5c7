"""What `pulumi up` runs."""

import gc

gc.disable()  # the SDK's hundred thousands of classes and functions live until the end: walking them takes a quarter of the time

from srvmod.infra.program import program  # noqa: E402

program()
