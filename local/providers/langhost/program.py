"""Runs one Pulumi program in this process: ``python program.py '<json>'``.

The SDK does the work (`run_in_stack`); this sets up what the engine said in its Run request.
"""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import sys
import traceback
from pathlib import Path

from pulumi import RunError, log, runtime


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
    entry = program / "__main__.py" if program.is_dir() else program

    def body() -> None:
        runpy.run_path(str(entry), run_name="__main__")

    try:
        asyncio.run(runtime.run_in_stack(body))
    except RunError as error:
        log.error(str(error))
        return 32
    except Exception:
        log.error(f"Program failed with an unhandled exception:\n{traceback.format_exc()}")
        return 32
    return 0


if __name__ == "__main__":
    code = main(sys.argv[1])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # grpc's threads would keep the process for seconds
