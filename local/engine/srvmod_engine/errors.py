"""Failures at start, each with the exit code that the pod's status shows."""

from enum import IntEnum


class ExitCode(IntEnum):
    """Why the process ended; 0 is a requested shutdown, 2 is argparse's own for a bad command line."""

    CONFIG = 3
    ISLAND = 4
    WEIGHTS = 5


class StartError(Exception):
    """The engine refuses to start. The message names the place, the value, what is allowed and the fix."""

    code: ExitCode = ExitCode.CONFIG


class ConfigError(StartError):
    """Options that vLLM's own configuration would refuse."""

    code = ExitCode.CONFIG


class IslandError(StartError):
    """The GPUs that the container got are not one island of the right size (clause INV: TP within one NUMA node)."""

    code = ExitCode.ISLAND


class WeightsError(StartError):
    """The model folder isn't there or isn't complete."""

    code = ExitCode.WEIGHTS
