"""Runs one Pulumi program in this process: ``python program.py '<json>'``.

The SDK does the work (`run_in_stack`); this sets up what the engine said in its Run request.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import runpy
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pulumi import RunError, log, runtime

REPORTED = 32
PARENT_SECONDS = 1.0
"""How often it is looked whether the language host is still there."""
MONITOR_GONE = "resource monitor shut down"


def main(given: str) -> int:
    """The exit status: 0, 1 for a failed program, 32 for one whose error was already reported."""
    run = json.loads(given)
    program = Path(run["program"])
    os.chdir(run["pwd"])
    sys.path.insert(0, str(program if program.is_dir() else program.parent))
    sys.argv = [str(program), *run["args"]]
    runtime.configure(
        runtime.Settings(
            monitor=run["monitor"],
            engine=run["engine"],
            project=run["project"],
            stack=run["stack"],
            parallel=run["parallel"],
            dry_run=run["dryRun"],
            organization=run["organization"],
            root_directory=run["root"],
        )
    )
    runtime.set_all_config(run["config"], run["secrets"])
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # a failed program leaves futures unread; that is fine
    try:
        asyncio.run(_run(program, max(int(run["parallel"]), 1)))
    except RunError as error:
        log.error(str(error))
        return REPORTED
    except Exception as error:
        if MONITOR_GONE not in str(error):  # the engine gave up after an error that it has shown already
            log.error(f"Program failed with an unhandled exception:\n{_user_trace(error)}")
        return REPORTED
    return 0


async def _run(program: Path, parallel: int) -> None:
    """The program in the stack's event loop, with as many threads as the SDK's own host gives it."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(4 * min(parallel, 64)))
    entry = program / "__main__.py" if program.is_dir() else program

    def body() -> None:
        runpy.run_path(str(entry), run_name="__main__")

    await runtime.run_in_stack(body)


def _end_with(parent: int) -> None:
    """End when the language host is gone, which ends its programs itself unless it was killed."""
    while os.getppid() == parent:
        time.sleep(PARENT_SECONDS)
    os._exit(1)


def _user_trace(error: Exception) -> str:
    """The traceback without the frames of the SDK, of asyncio and of this file."""
    lines = traceback.TracebackException.from_exception(error)
    theirs = (str(Path(asyncio.__file__).parent), str(Path(runtime.__file__).parent.parent), __file__, runpy.__file__)
    own = [frame for frame in lines.stack if not frame.filename.startswith((*theirs, "<frozen"))]
    lines.stack = traceback.StackSummary.from_list(own)
    return "".join(lines.format() if own else lines.format_exception_only())


if __name__ == "__main__":
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    code = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # grpc's threads would keep the process for seconds
