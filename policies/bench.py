"""`srvmod bench check`: time and memory of a check, beside checkov and conftest where they are installed."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srvmod.contract.bench import BenchResult

LARGE_BYTES = 50_000_000
TREE_BYTES, TREE_FILE = 20_000_000, 4
"""A cluster's export as a tree of files, and how many objects a file has: where start-up no longer decides."""
MOST_LARGE_MIB = 400
"""Goal: memory of a check of 50 MB."""
OF_CHECKOV = 0.1
OF_CONFTEST = 1.0
REGO = """package main

import rego.v1

args contains arg if some arg in input.spec.template.spec.containers[_].args

deny contains msg if {
  input.kind == "Deployment"
  some arg in args
  startswith(arg, "--tensor-parallel-size=")
  arg != "--tensor-parallel-size=4"
  msg := sprintf("MC-HW-01: %s", [arg])
}

deny contains msg if {
  input.kind == "Deployment"
  some arg in args
  startswith(arg, "--block-size=")
  arg != "--block-size=16"
  msg := sprintf("MC-KV-01: %s", [arg])
}

deny contains msg if {
  input.kind == "Deployment"
  some arg in args
  startswith(arg, "--stream-interval=")
  arg != "--stream-interval=1"
  msg := sprintf("MC-SE-01: %s", [arg])
}
"""
"""Three clauses as a team without this check would write them; it sees only one of their spellings."""


@dataclass(frozen=True)
class Run:
    """One process: wall seconds, CPU seconds, and the largest resident memory in MiB."""

    wall_seconds: float
    cpu_seconds: float
    memory_mib: float


def timed(command: Sequence[str]) -> Run:
    """Run a command. Its exit code says what it found and doesn't matter here; that it can't start does."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    wall = time.perf_counter() - start
    return Run(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def large_input(size: int) -> Iterator[str]:
    """Manifests as a cluster's export has them: many Deployments, ConfigMaps with files, hardly an engine."""
    written = count = 0
    while written < size:
        count += 1
        text = _config_map(count) if count % 3 else _deployment(count)
        written += len(text)
        yield text


def _deployment(count: int) -> str:
    containers = "".join(
        f"        - name: c{i}\n          image: registry.example.com/team/app-{count}:{i}\n"
        f"          args: [--listen=:80{i}0, --log-level=info]\n"
        f"          env:\n            - {{name: A, value: '{count}'}}\n            - {{name: B, value: b}}\n"
        for i in range(3)
    )
    return (
        f"---\napiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-{count}\n  namespace: n{count % 50}\n"
        f"spec:\n  replicas: 2\n  selector: {{matchLabels: {{app: a{count}}}}}\n  template:\n"
        f"    metadata: {{labels: {{app: a{count}}}}}\n    spec:\n      containers:\n{containers}"
    )


def _config_map(count: int) -> str:
    line = f"value of a line of file {count}, as configuration files have them"
    lines = "".join(f"    key_{i} = {line}\n" for i in range(120))
    head = f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{count}, namespace: n}}\n"
    return f"{head}data:\n  app.conf: |\n{lines}"


def bench_check(folder: Path, runs: int, checkov: str | None = None, conftest: str | None = None) -> dict[str, Any]:
    """Figures of this check and of others on the same files; `absent` names those that aren't installed."""
    own = [sys.executable, "-m", "srvmod.ops.cli", "check"]
    figures: dict[str, float] = {}
    absent: list[str] = []
    met = True
    mine = _median([*own, str(folder)], runs)
    figures["check_cpu_seconds"] = round(mine.cpu_seconds, 3)
    figures["check_wall_seconds"] = round(mine.wall_seconds, 3)
    figures["check_memory_mib"] = round(mine.memory_mib)
    with tempfile.TemporaryDirectory() as temporary:
        rego = Path(temporary) / "policy"
        rego.mkdir()
        (rego / "clauses.rego").write_text(REGO)
        tree = Path(temporary) / "tree"
        write_tree(tree, TREE_BYTES)
        programs = {"checkov": checkov or shutil.which("checkov"), "conftest": conftest or shutil.which("conftest")}
        absent += [name for name, program in programs.items() if program is None]
        if (program := programs["checkov"]) is not None:
            other = _median([program, "--quiet", "-d", str(folder)], runs)
            figures |= _beside("checkov", mine, other)
            met = met and figures["of_checkov"] <= OF_CHECKOV
        if (program := programs["conftest"]) is not None:
            few = _median([program, "test", "-p", str(rego), str(folder)], runs)
            figures |= _beside("conftest_few_files", mine, few)
            tree_run, other = (
                _median([*own, str(tree)], runs),
                _median([program, "test", "-p", str(rego), str(tree)], runs),
            )
            figures["tree_cpu_seconds"] = round(tree_run.cpu_seconds, 3)
            figures |= _beside("conftest", tree_run, other)
            met = met and figures["of_conftest"] <= OF_CONFTEST
        large = Path(temporary) / "large.yaml"
        with large.open("w", encoding="utf-8") as file:
            file.writelines(large_input(LARGE_BYTES))
        big = timed([*own, str(large)])
    figures["large_cpu_seconds"] = round(big.cpu_seconds, 2)
    figures["large_memory_mib"] = round(big.memory_mib)
    met = met and big.memory_mib <= MOST_LARGE_MIB
    goals = {"of_checkov": OF_CHECKOV, "of_conftest": OF_CONFTEST, "large_memory_mib": MOST_LARGE_MIB}
    return {**BenchResult("check", figures, goals, met).as_json(), "absent": absent}


def write_tree(folder: Path, size: int) -> None:
    """A folder of small files with the objects of `large_input`."""
    folder.mkdir()
    texts = large_input(size)
    for count in itertools.count():
        group = list(itertools.islice(texts, TREE_FILE))
        if not group:
            return
        (folder / f"{count:05}.yaml").write_text("".join(group), encoding="utf-8")


def _beside(name: str, mine: Run, other: Run) -> dict[str, float]:
    """Another program's figures, and this check's CPU time as a share of its own."""
    return {
        f"{name}_cpu_seconds": round(other.cpu_seconds, 3),
        f"{name}_wall_seconds": round(other.wall_seconds, 3),
        f"of_{name}": round(mine.cpu_seconds / other.cpu_seconds, 3),
    }


def _median(command: Sequence[str], runs: int) -> Run:
    done = [timed(command) for _ in range(runs)]
    return Run(
        statistics.median(run.wall_seconds for run in done),
        statistics.median(run.cpu_seconds for run in done),
        max(run.memory_mib for run in done),
    )


def shown(result: dict[str, Any]) -> str:
    """The figures for people."""
    lines = [f"{name:>22}  {figure}" for name, figure in result["figures"].items()]
    lines += [f"{name:>22}  not installed: not compared" for name in result["absent"]]
    return "\n".join([*lines, "met" if result["met"] else "missed"])


def as_json(result: dict[str, Any]) -> str:
    """One JSON object."""
    return json.dumps(result)
