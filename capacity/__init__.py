"""Capacity: what an engine holds in memory, how long a step takes, and how many engines a traffic mix needs.

Pure functions without I/O beyond this package's own data; clauses MC-HW-01, MC-KV-01 and INV-SRVMOD-02.
"""

from srvmod.capacity.allreduce import Stack, all_reduce
from srvmod.capacity.layout import CapacityError, Layout, Slo, Traffic
from srvmod.capacity.memory import (
    KvRoom,
    fragmentation,
    kv_bytes_per_token,
    kv_bytes_per_token_per_gpu,
    kv_room,
    weight_bytes_per_gpu,
)
from srvmod.capacity.planner import Limit, Plan, Prediction, misses, plan, predict
from srvmod.capacity.steptime import PARAMETERS, StepParameters, StepTime, step_time

__all__ = [
    "PARAMETERS",
    "CapacityError",
    "KvRoom",
    "Layout",
    "Limit",
    "Plan",
    "Prediction",
    "Slo",
    "Stack",
    "StepParameters",
    "StepTime",
    "Traffic",
    "all_reduce",
    "fragmentation",
    "kv_bytes_per_token",
    "kv_bytes_per_token_per_gpu",
    "kv_room",
    "misses",
    "plan",
    "predict",
    "step_time",
    "weight_bytes_per_gpu",
]
