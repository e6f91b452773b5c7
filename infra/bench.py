"""What a run of the program costs beyond importing the SDK modules that it uses."""

import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from srvmod.contract.bench import BenchResult

GOAL_RATIO = 1.25
RUNS = 5

IMPORTS = """
import importlib, sys
for name in sys.stdin.read().split():
    importlib.import_module(name)
"""

PROGRAM = """
import gc, sys
gc.disable()
from pathlib import Path
from srvmod.infra.render.environments import graph_of
from srvmod.infra.settings import load_stack_file
graph = graph_of(load_stack_file(Path(sys.stdin.read())))
assert graph.requests and graph.outputs
print("\\n".join(sorted(sys.modules)))
"""
"""Without garbage collection, as `infra/__main__.py` runs it."""

SDK = ("pulumi", "pulumi_aws", "pulumi_eks", "pulumi_kubernetes")


def bench_program(root: Path, env: str = "prod", runs: int = RUNS) -> dict[str, Any]:
    """A full run of the program under mocks against importing the same SDK modules, as `import` does it.

    Each run is a process of its own and the kinds take turns. The ratio is of CPU time, which other load on the
    machine hardly changes; wall time is reported beside it, and so is the ratio to imports without garbage
    collection, which the program also does without. Raises CalledProcessError when the program fails.
    """
    file = str(root / f"Pulumi.{env}.yaml")
    loaded = _run(PROGRAM, file, root).output.split()  # also reads everything into the page cache
    modules = "\n".join(name for name in loaded if name.partition(".")[0] in SDK)
    quick = f"import gc; gc.disable()\n{IMPORTS}"
    rounds = [
        (_run(IMPORTS, modules, root), _run(quick, modules, root), _run(PROGRAM, file, root)) for _ in range(runs)
    ]
    ratio = median(program.cpu / imports.cpu for imports, _, program in rounds)
    figures = {
        "sdkModules": modules.count("\n") + 1,
        "importsCpuSeconds": round(median(imports.cpu for imports, _, _ in rounds), 3),
        "programCpuSeconds": round(median(program.cpu for _, _, program in rounds), 3),
        "importsWallSeconds": round(median(imports.wall for imports, _, _ in rounds), 3),
        "programWallSeconds": round(median(program.wall for _, _, program in rounds), 3),
        "ratio": round(ratio, 3),
        "ratioToImportsWithoutGc": round(median(program.cpu / quick.cpu for _, quick, program in rounds), 3),
        "runs": runs,
    }
    return BenchResult("program", figures, {"ratio": GOAL_RATIO}, ratio <= GOAL_RATIO).as_json()


@dataclass(frozen=True)
class Run:
    """Seconds of one process, and what it printed."""

    wall: float
    cpu: float
    output: str


def _run(code: str, text: str, root: Path) -> Run:
    before, started = _children_cpu(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        check=True,
        input=text,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    return Run(time.perf_counter() - started, _children_cpu() - before, done.stdout)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
