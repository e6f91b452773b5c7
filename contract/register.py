"""All claims in one place, for `srvmod claims` and for tests."""

from typing import Final

from srvmod.contract import numbers as n
from srvmod.contract.claims import Claim, Number
from srvmod.contract.more_statements import MORE_STATEMENTS
from srvmod.contract.statements import STATEMENTS
from srvmod.contract.words import Clause

NUMBERS: Final[tuple[Number[int] | Number[float], ...]] = (
    n.SESSIONS,
    n.OUTPUT_TOKENS_PER_SECOND,
    n.TTFT_MS,
    n.ITL_P95_MS,
    n.SCALE_OUT_ITL_MS,
    n.SCALE_OUT_AFTER_SECONDS,
    n.GPUS_PER_NODE,
    n.NVLINK_GB_PER_SECOND,
    n.TENSOR_PARALLEL_SIZE,
    n.ENGINES_PER_NODE,
    n.KV_BLOCK_TOKENS,
    n.WEIGHTS_GB,
    n.WEIGHTS_GB_PER_GPU,
    n.GPU_MEMORY_GB,
    n.CUDA_OVERHEAD_GB,
    n.KV_CACHE_GB_PER_GPU,
    n.CONCURRENT_CONTEXTS,
    n.CONTEXT_TOKENS,
    n.FRAGMENTATION_BEFORE_PERCENT,
    n.FRAGMENTATION_PERCENT,
    n.JOIN_MS,
    n.CONTIGUOUS_WASTE_LOW_PERCENT,
    n.CONTIGUOUS_WASTE_HIGH_PERCENT,
    n.DIAGRAM_WEIGHTS_GB_PER_GPU,
    n.ALL_REDUCE_MS,
    n.INCIDENT_TTFT_MS,
    n.WEIGHT_ITL,
    n.WEIGHT_TTFT,
    n.WEIGHT_CONCURRENCY,
    n.WEIGHT_HEAD_OF_LINE,
    n.OPTION_A_ITL_MS,
    n.OPTION_A_TENSOR_PARALLEL_SIZE,
    n.OPTION_B_ITL_MS,
    n.OPTION_C_ITL_MS,
    n.OPTION_C_ITL_CEILING_MS,
    n.DRAFT_MODEL_PARAMETERS_BILLIONS,
    n.DRAFT_TOKENS_PER_SECOND_PER_SESSION,
)
"""Every number of the specification, in the order of its rooms."""

CLAIMS: Final[tuple[Claim, ...]] = (*NUMBERS, *STATEMENTS, *MORE_STATEMENTS)
"""Every claim: numbers first, then sentences without one."""


def claims_of(clause: Clause) -> tuple[Claim, ...]:
    """The claims that a clause makes."""
    return tuple(claim for claim in CLAIMS if claim.clause is clause)
