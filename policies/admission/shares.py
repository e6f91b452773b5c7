"""What depends on how many engines share the declared sessions: sequence limits and the KV cache's room."""

from __future__ import annotations

from dataclasses import replace

from srvmod.capacity import Layout, kv_allotted_per_token_per_gpu, memory_budget
from srvmod.contract import CONTEXT_TOKENS, KV_BLOCK_TOKENS, Clause, KvCacheDtype
from srvmod.policies.admission.engines import absent_or, engine
from srvmod.policies.admission.policy import Validation
from srvmod.policies.admission.speculation import OFF
from srvmod.policies.config import Config
from srvmod.policies.rules.batching import DEFAULT_MAX_NUM_SEQS
from srvmod.policies.rules.memory import DEFAULT_UTILIZATION, DTYPES, LARGEST_DRAFT
from srvmod.policies.rules.subjects import ENGINES_ANNOTATION, SESSIONS_ANNOTATION

CB, KV = Clause.MC_CB_01, Clause.MC_KV_01
PROFILE_TOKENS = 8_192
"""The step's token budget where no option gives it, as the rule on the cache's room has it."""


def variables(config: Config) -> dict[str, str]:
    """Annotations of the object and its template; the share; the cache's blocks and what they must hold."""
    shape = config.shape(config.model)
    assert shape is not None, config.model
    both = "(variables.template.?metadata.?annotations.orValue({}))"
    own = "(object.metadata.?annotations.orValue({}))"

    def noted(key: str) -> str:
        return f"'{key}' in {own} ? {own}['{key}'] : '{key}' in {both} ? {both}['{key}'] : ''"

    def layout(dtype: KvCacheDtype, tokens: int) -> Layout:
        return Layout(
            kv_cache_dtype=dtype, gpu_memory_utilization=1.0, weight_bytes_per_element=1, max_num_batched_tokens=tokens
        )

    budget = memory_budget(shape, layout(KvCacheDtype.FP8, PROFILE_TOKENS))
    other = memory_budget(shape, layout(KvCacheDtype.FP8, 2 * PROFILE_TOKENS))
    per_token = (budget.kv_cache - other.kv_cache) / PROFILE_TOKENS
    drafting = replace(layout(KvCacheDtype.FP8, PROFILE_TOKENS), draft=LARGEST_DRAFT)
    draft_bytes = memory_budget(shape, drafting).draft

    def block(dtype: KvCacheDtype) -> str:
        """Bytes of a block of this type, without drafts and with."""
        plain = layout(dtype, PROFILE_TOKENS)
        sizes = (
            kv_allotted_per_token_per_gpu(shape, one) * KV_BLOCK_TOKENS.value
            for one in (plain, replace(plain, draft=LARGEST_DRAFT))
        )
        return "(variables.speculation in {} ? {:.1f} : {:.1f})".format(OFF, *sizes)

    fp8 = [name for name, dtype in DTYPES.items() if dtype is KvCacheDtype.FP8]
    free = (
        f"{budget.kv_cache:.1f} - {budget.total:.1f} * (1.0 - (variables.utilization == '' ? {DEFAULT_UTILIZATION} : "
        f"double(variables.utilization))) - {per_token:.6f} * (double(variables.batchedTokens == '' ? "
        f"'{PROFILE_TOKENS}' : variables.batchedTokens) - {float(PROFILE_TOKENS)}) - (variables.speculation in {OFF} ? "
        f"0.0 : {draft_bytes:.1f})"
    )
    longest = f"(variables.modelLength in ['', 'auto'] ? {shape.context_tokens} : int(variables.modelLength))"
    tokens = KV_BLOCK_TOKENS.value
    return {
        "sessionsNote": noted(SESSIONS_ANNOTATION),
        "enginesNote": noted(ENGINES_ANNOTATION),
        "numbers": "[variables.sessionsNote, variables.enginesNote].all(n, n == '' || n.matches('^[1-9][0-9]{0,8}$'))",
        "owned": "has(object.metadata.ownerReferences) && object.metadata.ownerReferences.exists(o, has(o.controller)"
        " && o.controller)",
        "replicas": "has(object.spec.replicas) ? object.spec.replicas : 1",
        "minimum": "variables.numbers && variables.enginesNote != '' && int(variables.enginesNote) > variables.replicas"
        " ? int(variables.enginesNote) : (variables.replicas > 0 ? variables.replicas : 1)",
        "sessions": "variables.numbers && variables.sessionsNote != '' ? int(variables.sessionsNote) : "
        f"{config.sessions}",
        "share": "(variables.sessions + variables.minimum - 1) / variables.minimum",
        "blockBytes": f"variables.kvDtype in {fp8!r} ? {block(KvCacheDtype.FP8)} : {block(KvCacheDtype.BF16)}",
        "blocks": "variables.kvBlocks != '' ? double(variables.kvBlocks) : variables.kvBytes != '' ? "
        f"double(variables.kvBytes) / variables.blockBytes : ({free}) / variables.blockBytes",
        "longest": longest,
        "context": f"((variables.longest < {CONTEXT_TOKENS.value} ? variables.longest : "
        f"{CONTEXT_TOKENS.value}) + {tokens - 1})"
        f" / {tokens}",
        "knownModel": f"variables.model.matches('^([/.]|(s3|gs|oci)://)') || "
        f"variables.model.lowerAscii().contains('{_base(config.model)}')",
    }


def _base(model: str) -> str:
    return model.rpartition("/")[2].lower().removeprefix("meta-")


def validations() -> list[Validation]:
    """MC-CB-01 and MC-KV-01 on the share. A controller's own pods and replica sets are judged as their owner."""
    annotation = f"annotation {SESSIONS_ANNOTATION}: '<number>'"
    more = f"more engines, or the annotations {SESSIONS_ANNOTATION} and {ENGINES_ANNOTATION} as the traffic is planned"
    shared = "string(variables.share) + ' sessions per engine'"

    def share(condition: str) -> str:
        return f"variables.owned || !variables.numbers || ({condition})"

    number = "$x.matches('^[0-9]{1,9}$')"
    fits = (
        "variables.blocks >= double(variables.share * variables.context) && "
        "variables.blocks >= double((variables.longest + 15) / 16)"
    )
    return [
        engine(
            CB, "sequence-limit", "variables.numbers", "an annotation on sessions or engines isn't a number", annotation
        ),
        engine(
            CB,
            "sequence-limit",
            share(
                f"variables.sequences == '' ? {DEFAULT_MAX_NUM_SEQS} >= variables.share : "
                "variables.sequences.matches('^[0-9]{1,9}$') && int(variables.sequences) >= variables.share"
            ),
            "max_num_seqs is below the sessions per engine",
            more,
            shared,
        ),
        engine(
            CB,
            "sequence-limit",
            share(absent_or("activeSequences", f"{number} && int($x) >= variables.share")),
            "max_num_active_seqs is below the sessions per engine",
            "leave it out",
            shared,
        ),
        engine(
            CB,
            "admission",
            share(absent_or("queued", f"{number} && int($x) >= variables.share")),
            "max_num_queued_reqs is below the sessions per engine",
            "leave it out",
            shared,
        ),
        engine(
            CB,
            "admission",
            share(absent_or("batchedTokens", f"{number} && int($x) > variables.share")),
            "max_num_batched_tokens leaves no room for prompts",
            "--max-num-batched-tokens=2048",
            shared,
        ),
        engine(
            KV,
            "kv-room",
            "variables.knownModel",
            "the model's shape isn't known here, so the cache's room isn't",
            "the folder of the planned model",
            "variables.model",
        ),
        engine(
            KV,
            "kv-room",
            share(f"!variables.knownModel || ({fits})"),
            "the declared contexts don't fit",
            "more memory for the cache, an FP8 cache, more engines, or shorter contexts",
            shared,
        ),
    ]
