"""Capacity: what an engine holds in memory, how long a step takes, and how many engines a traffic mix needs.

Pure functions without I/O beyond this package's own data; clauses MC-HW-01, MC-KV-01 and INV-SRVMOD-02.
"""

from srvmod.capacity.allreduce import all_reduce
from srvmod.capacity.layout import CapacityError, Layout, Per, Slo, Traffic
from srvmod.capacity.memory import (
    KvRoom,
    MemoryBudget,
    fragmentation,
    kv_allotted_per_token_per_gpu,
    kv_bytes_per_token,
    kv_bytes_per_token_per_gpu,
    kv_room,
    memory_budget,
    weight_bytes_per_gpu,
)
from srvmod.capacity.parameters import Calibration, ErrorBand, StepParameters, calibration
from srvmod.capacity.planner import (
    Interval,
    NodeRange,
    Plan,
    node_range,
    plan,
    predict,
    rate_between,
    times_between,
)
from srvmod.capacity.stacks import Stack, stack_of
from srvmod.capacity.steady import Limit, Prediction, misses
from srvmod.capacity.steptime import StepModel, StepTime, Work, step_time

__all__ = [
    "Calibration",
    "CapacityError",
    "ErrorBand",
    "Interval",
    "KvRoom",
    "Layout",
    "Limit",
    "MemoryBudget",
    "NodeRange",
    "Per",
    "Plan",
    "Prediction",
    "Slo",
    "Stack",
    "StepModel",
    "StepParameters",
    "StepTime",
    "Traffic",
    "Work",
    "all_reduce",
    "calibration",
    "fragmentation",
    "kv_allotted_per_token_per_gpu",
    "kv_bytes_per_token",
    "kv_bytes_per_token_per_gpu",
    "kv_room",
    "memory_budget",
    "misses",
    "node_range",
    "plan",
    "predict",
    "rate_between",
    "stack_of",
    "step_time",
    "times_between",
    "weight_bytes_per_gpu",
]
