"""What a run of the program costs beyond importing the SDK modules that it uses."""

import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

GOAL_RATIO = 1.25
RUNS = 5

IMPORTS = """
import pulumi
import pulumi_aws as aws, pulumi_eks as eks, pulumi_kubernetes as k8s
(aws.ec2.Vpc, aws.eks.Addon, aws.iam.Role, aws.kms.Key, aws.s3.Bucket, aws.sqs.Queue, aws.ecr.Repository,
 aws.vpc.SecurityGroupIngressRule, aws.cloudwatch.EventRule, aws.Provider)
(eks.Cluster, k8s.Provider, k8s.core.v1.Service, k8s.apps.v1.Deployment, k8s.networking.v1.NetworkPolicy,
 k8s.policy.v1.PodDisruptionBudget, k8s.rbac.v1.ClusterRole, k8s.helm.v3.Release, k8s.apiextensions.CustomResource)
"""

PROGRAM = """
from pathlib import Path
from srvmod.infra.render.environments import graph_of
from srvmod.infra.settings import load_stack_file
graph = graph_of(load_stack_file(Path({file!r})))
assert graph.resources and graph.outputs
"""


def bench_program(root: Path, env: str = "prod", runs: int = RUNS) -> dict[str, Any]:
    """A full run of the program under mocks against importing the same SDK modules.

    Each run is a process of its own and the two kinds take turns. The ratio is of CPU time, which other load on the
    machine hardly changes; wall time is reported beside it. Raises CalledProcessError when the program fails.
    """
    program = PROGRAM.format(file=str(root / f"Pulumi.{env}.yaml"))
    _run(program, root)  # reads everything into the page cache once
    pairs = [(_run(IMPORTS, root), _run(program, root)) for _ in range(runs)]
    ratio = median(whole.cpu / imports.cpu for imports, whole in pairs)
    return {
        "name": "program",
        "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "system": platform.platform()},
        "figures": {
            "importsCpuSeconds": round(median(imports.cpu for imports, _ in pairs), 3),
            "programCpuSeconds": round(median(whole.cpu for _, whole in pairs), 3),
            "importsWallSeconds": round(median(imports.wall for imports, _ in pairs), 3),
            "programWallSeconds": round(median(whole.wall for _, whole in pairs), 3),
            "ratio": round(ratio, 3),
            "runs": runs,
        },
        "goals": {"ratio": GOAL_RATIO},
        "met": ratio <= GOAL_RATIO,
    }


@dataclass(frozen=True)
class Cost:
    """Seconds of one process."""

    wall: float
    cpu: float


def _run(code: str, root: Path) -> Cost:
    before, started = _children_cpu(), time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=root,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return Cost(wall=time.perf_counter() - started, cpu=_children_cpu() - before)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
