"""The product's words: clauses, verdicts, units and the vocabularies that every room shares."""

from enum import StrEnum


def counted(number: int, thing: str) -> str:
    """ "1 engine", "2 engines", "1,000 engines": for messages; `thing` is the singular of a noun that takes an s."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


class Clause(StrEnum):
    """Where the specification SRVMOD-FIN-001 says something; the value is the id that findings print."""

    SUMMARY = "SUMMARY"
    OVERVIEW = "OVERVIEW"
    CRITERIA = "CRITERIA"
    COMPARISON = "COMPARISON"
    MC_HW_01 = "MC-HW-01"
    MC_KV_01 = "MC-KV-01"
    MC_CB_01 = "MC-CB-01"
    MC_SE_01 = "MC-SE-01"
    INV_SRVMOD_01 = "INV-SRVMOD-01"
    INV_SRVMOD_02 = "INV-SRVMOD-02"
    INV_SRVMOD_03 = "INV-SRVMOD-03"
    G_1 = "G-1"
    G_2 = "G-2"
    DEC_SRVMOD_01 = "DEC-SRVMOD-01"
    VERIFICATION = "VERIFICATION"

    @property
    def enforced(self) -> bool:
        """Whether the clause is a mechanism or an invariant that gates check, not background."""
        return self.value.startswith(("MC-", "INV-"))


class Verdict(StrEnum):
    """What was found when a sentence of the specification was judged."""

    TRUE = "true"
    FALSE = "false"
    CONDITIONAL = "conditional"
    UNKNOWN = "unknown"


class Unit(StrEnum):
    """Units of the numbers in the specification; GB is 1e9 bytes and GB/s 1e9 bytes per second."""

    SESSIONS = "sessions"
    TOKENS = "tokens"
    TOKENS_PER_SECOND = "tokens/s"
    TOKENS_PER_SECOND_PER_SESSION = "tokens/s/session"
    MILLISECONDS = "ms"
    SECONDS = "s"
    GIGABYTES = "GB"
    GIGABYTES_PER_SECOND = "GB/s"
    PERCENT = "%"
    GPUS = "GPUs"
    ENGINES = "engines"
    CONTEXTS = "contexts"
    WEIGHT = "weight"
    PARAMETERS = "parameters"


class EngineKind(StrEnum):
    """What runs in an engine's pod: vLLM itself, or the simulation of it that only simulated AWS may run."""

    VLLM = "vllm"
    SIMULATED = "simulated"


class KvCacheDtype(StrEnum):
    """Element type of the KV cache; `vllm_name` is what `--kv-cache-dtype` takes."""

    FP8 = "fp8"
    BF16 = "bf16"

    @property
    def bytes_per_element(self) -> int:
        """1 for fp8, 2 for bf16."""
        return 1 if self is KvCacheDtype.FP8 else 2

    @property
    def vllm_name(self) -> str:
        """The value of vLLM's `--kv-cache-dtype`."""
        return "fp8" if self is KvCacheDtype.FP8 else "bfloat16"


class CapacityType(StrEnum):
    """How a p5 is bought, in Karpenter's words (`karpenter.sh/capacity-type`). Spot is not offered: an
    interruption would cut every stream of two engines with two minutes' notice."""

    RESERVED = "reserved"
    ON_DEMAND = "on-demand"
