"""Rules about engines, model and traffic."""

from collections.abc import Iterator

from srvmod.capacity import CapacityError
from srvmod.contract import EngineKind
from srvmod.infra.settings.places import SettingPath
from srvmod.infra.settings.rules.finding import Finding, Rule
from srvmod.infra.settings.settings import Settings

OWN_FLAGS = {
    "--model": "model.id",
    "--served-model-name": "model.servedName",
    "--tensor-parallel-size": "engine.tensorParallelSize",
    "-tp": "engine.tensorParallelSize",
    "--pipeline-parallel-size": "none: an engine is one island",
    "-pp": "none: an engine is one island",
    "--data-parallel-size": "engine.minEngines",
    "-dp": "engine.minEngines",
    "--block-size": "none: fixed by MC-KV-01",
    "--kv-cache-dtype": "model.kvCacheDtype",
    "--max-model-len": "model.maxModelLen",
    "--max-num-seqs": "none: follows from the traffic",
    "--max-num-batched-tokens": "engine.maxNumBatchedTokens",
    "--max-cudagraph-capture-size": "none: follows from the traffic",
    "--speculative-config": "engine.speculation",
    "-sc": "engine.speculation",
    "--spec-method": "engine.speculation",
    "--spec-model": "engine.speculation",
    "--spec-tokens": "engine.speculation",
    "--shutdown-timeout": "engine.shutdownTimeoutSeconds",
    "--stream-interval": "none: one event per token",
    "--gpu-memory-utilization": "none: fixed by the plan",
    "--host": "none: fixed by the pod",
    "--port": "none: fixed by the pod",
    "--api-key": "none: the gateway checks keys",
}
"""Flags that the program sets itself, and the setting that says their value."""

CAPACITY_KEYS: dict[str, SettingPath] = {
    "sessions": ("traffic", "sessions"),
    "prompt_tokens": ("traffic", "promptTokens"),
    "output_tokens": ("traffic", "outputTokens"),
    "prefix_hit_rate": ("traffic", "prefixHitRate"),
    "tokens_per_second": ("traffic", "tokensPerSecond"),
    "itl_p95": ("slo", "itlP95Ms"),
    "ttft": ("slo", "ttftMs"),
    "max_num_batched_tokens": ("engine", "maxNumBatchedTokens"),
}


def targets_can_be_held(s: Settings) -> Iterator[Finding]:
    """Some traffic and some targets are beyond any number of engines."""
    try:
        _ = s.sizing
    except CapacityError as error:
        path = CAPACITY_KEYS.get(error.field, ("traffic",))
        yield Finding(path, error.problem, error.allowed, error.value)


def contexts_fit_the_model(s: Settings) -> Iterator[Finding]:
    """The mean request must fit in the longest sequence, and that in what the model was trained for."""
    longest, trained = s.model.max_model_len, s.model_shape.context_tokens
    if longest > trained:
        yield Finding(
            ("model", "maxModelLen"), f"is more than {s.model.id} was trained for", f"at most {trained}", longest
        )
    length = s.traffic.prompt_tokens + s.traffic.output_tokens
    if length > longest:
        yield Finding(
            ("model", "maxModelLen"),
            f"is less than the mean request of {length} tokens (traffic.promptTokens + outputTokens)",
            f"{length} to {trained}",
            longest,
        )


def budget_holds_a_step(s: Settings) -> Iterator[Finding]:
    """vLLM refuses a token budget below its sequence limit."""
    budget, sequences = s.engine.max_num_batched_tokens, s.sizing.max_num_seqs
    if budget < sequences:
        yield Finding(
            ("engine", "maxNumBatchedTokens"),
            f"is less than the sequence limit of {sequences} that follows from the traffic",
            f"at least {sequences}, and room for prompts",
            budget,
        )


def engines_in_order(s: Settings) -> Iterator[Finding]:
    """The scaler needs a range."""
    fewest, most = s.sizing.min_engines, s.engine.max_engines
    if most is not None and most < fewest:
        yield Finding(("engine", "maxEngines"), f"is less than the fewest, {fewest}", f"at least {fewest}")


PRODUCTION = "prod"
"""Name of the stack where a plan that misses its targets needs somebody's name."""


def prod_holds_its_plan(s: Settings) -> Iterator[Finding]:
    """Too few engines for the targets are somebody's decision in prod, never an accident; a waiver ends with it."""
    sizing, waiver = s.sizing, s.engine.plan_waiver
    if sizing.missed and s.stack == PRODUCTION and waiver is None:
        missed = ", ".join(limit.value for limit in sizing.missed)
        yield Finding(
            ("engine", "minEngines"),
            f"misses at peak traffic: {missed}",
            f"at least {sizing.plan.engines_needed}, or engine.planWaiver with who accepts it and why",
        )
    if waiver is not None and not sizing.missed:
        yield Finding(
            ("engine", "planWaiver"),
            "waives nothing: the engines hold the targets",
            "no waiver; remove the key",
            waiver,
        )


def drafts_pay(s: Settings) -> Iterator[Finding]:
    """A draft model that helps no batch only costs memory; a simulation has none."""
    asked = s.engine.speculation
    if asked is None:
        return
    if s.engine.kind is EngineKind.SIMULATED:
        yield Finding(
            ("engine", "speculation"), "isn't what the simulated engine can do", "no speculation; leave it out"
        )
        return
    if not any(batches.tokens for batches in s.sizing.drafts):
        yield Finding(
            ("engine", "speculation", "acceptance"),
            "makes no batch faster: no draft is worth its time",
            "more, as measured, or no engine.speculation",
            asked.acceptance,
        )
    rows = max(batches.last * (batches.tokens + 1) for batches in s.sizing.drafts)
    if rows > s.engine.max_num_batched_tokens:
        yield Finding(
            ("engine", "maxNumBatchedTokens"),
            f"is less than the {rows} rows of a batch with its drafts",
            f"at least {rows}, and room for prompts; or fewer engine.speculation.tokens",
            s.engine.max_num_batched_tokens,
        )


def simulated_engine_stays_local(s: Settings) -> Iterator[Finding]:
    """A simulated engine answers nonsense: never for people."""
    if s.engine.kind is EngineKind.SIMULATED and not s.aws.simulated:
        yield Finding(("engine", "kind"), "is for simulated AWS only", "vllm")


def drain_outlasts_an_answer(s: Settings) -> Iterator[Finding]:
    """An engine that stops should be able to finish a mean answer at the slowest pace that is allowed."""
    needed = s.traffic.output_tokens * s.slo.itl_p95_ms / 1e3
    if s.engine.shutdown_timeout_seconds < needed:
        yield Finding(
            ("engine", "shutdownTimeoutSeconds"),
            f"is less than a mean answer takes ({s.traffic.output_tokens} tokens at {s.slo.itl_p95_ms:g} ms)",
            f"at least {needed:.0f}",
            s.engine.shutdown_timeout_seconds,
        )


def extra_arguments_are_extra(s: Settings) -> Iterator[Finding]:
    """A flag given twice would silently win over the program's own."""
    for index, argument in enumerate(s.engine.extra_args):
        flag = argument.partition("=")[0]
        flag = flag if not flag.startswith("--") else flag.replace("_", "-")
        if flag in OWN_FLAGS:
            yield Finding(
                ("engine", "extraArgs", index), "is a flag that the program sets itself", f"setting: {OWN_FLAGS[flag]}"
            )


RULES: tuple[Rule, ...] = (
    targets_can_be_held,
    contexts_fit_the_model,
    budget_holds_a_step,
    engines_in_order,
    prod_holds_its_plan,
    drafts_pay,
    simulated_engine_stays_local,
    drain_outlasts_an_answer,
    extra_arguments_are_extra,
)
