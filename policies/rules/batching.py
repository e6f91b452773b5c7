"""INV-SRVMOD-01 and MC-CB-01: batches are made anew at every step, and nothing throttles them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from srvmod.contract import Clause
from srvmod.policies.config import Config
from srvmod.policies.facts import Engine, Known, Software, Unknown, World
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.subjects import sessions_per_engine, vllm_engines

INCIDENT = "an answer waits for the longest one beside it, as in incident INC-5202"
STATIC = Maker(Clause.INV_SRVMOD_01, "iteration-level", INCIDENT)
ENGINE = Maker(
    Clause.INV_SRVMOD_01, "allowed-engine", "how it batches must be shown, and agreed to in the configuration"
)
SUSPECT = Maker(Clause.INV_SRVMOD_01, "readable-engine", "an engine whose command can't be read may be set to anything")
SIMULATION = Maker(
    Clause.INV_SRVMOD_01, "simulated-engine", "a simulation answers nonsense: it is for tests, never for people"
)
LIMIT = Maker(
    Clause.MC_CB_01, "sequence-limit", "sessions beyond the limit wait until others end, whatever the GPUs could do"
)
CHUNKED = Maker(Clause.MC_CB_01, "chunked-prefill", "a long prompt computed in one step stalls every running stream")
THROTTLE = Maker(Clause.MC_CB_01, "admission", "requests are held back or refused although there is room")

KNOWN_SCHEDULERS = {
    "vllm.v1.core.sched.scheduler.Scheduler",
    "vllm.v1.core.sched.async_scheduler.AsyncScheduler",
}
LABEL = "srvmod.dev/engine"
DEFAULT_MAX_NUM_SEQS = 1024
"""vLLM's own, for its server on GPUs of 70 GiB or more that aren't A100 (0.32 and 0.33)."""


def iteration_level(world: World, config: Config) -> Iterator[Finding]:
    """vLLM batches per iteration unless it runs one sequence at a time or another scheduler."""
    del config
    for engine in vllm_engines(world):
        batcher = engine.workload.batcher
        if batcher is not None:
            yield STATIC.error(batcher, "a batcher gathers requests in front of the engine", "leave the batcher out")
        limit = engine.line.integer("max_num_seqs")
        if isinstance(limit, Known) and limit.value <= 1:
            yield STATIC.error(
                limit.place, f"max_num_seqs is {limit.value}: one sequence at a time", "leave it to the plan"
            )
        scheduler = engine.line.string("scheduler_cls")
        if isinstance(scheduler, Unknown):
            yield STATIC.unknown("scheduler_cls", scheduler, "leave --scheduler-cls out")
        elif scheduler is not None and scheduler.value not in KNOWN_SCHEDULERS | {""}:
            unknown = Unknown(f"scheduler class {scheduler.value} isn't vLLM's own", scheduler.place)
            yield STATIC.unknown("whether it batches per iteration", unknown, "leave --scheduler-cls out")


def sequence_limit(world: World, config: Config) -> Iterator[Finding]:
    """`--max-num-seqs` (and what limits it further) is at least the engine's share of the sessions."""
    for engine in vllm_engines(world):
        sessions = sessions_per_engine(engine, world, config)
        limits = [("max_num_seqs", DEFAULT_MAX_NUM_SEQS), ("max_num_active_seqs", None)]
        for name, default in limits:
            limit = engine.line.integer(name)
            flag = f"--{name.replace('_', '-')}"
            if isinstance(limit, Unknown):
                yield LIMIT.unknown(name, limit, f"{flag} as a plain number")
                continue
            value = limit.value if limit is not None else default
            if value is None:
                continue
            if isinstance(sessions, Unknown):
                yield LIMIT.unknown("sessions per engine", sessions, "give replicas, or a scaler's minimum")
                break
            if value < sessions.value:
                given = "" if limit is not None else " (vLLM's default)"
                what = f"{name} is {value}{given}, below {sessions.value} sessions per engine ({sessions.text})"
                place = limit.place if limit is not None else engine.line.place
                yield LIMIT.error(place, what, f"{flag} of at least {sessions.value}, or more engines")


def chunked_prefill(world: World, config: Config) -> Iterator[Finding]:
    """Chunked prefill stays on."""
    del config
    for engine in vllm_engines(world):
        chunked = engine.line.switch("enable_chunked_prefill")
        if isinstance(chunked, Unknown):
            yield CHUNKED.unknown("enable_chunked_prefill", chunked, "--enable-chunked-prefill")
        elif chunked is not None and not chunked.value:
            yield CHUNKED.error(chunked.place, f"{chunked.text} turns chunked prefill off", "--enable-chunked-prefill")


def admission(world: World, config: Config) -> Iterator[Finding]:
    """Nothing holds requests back: queue limits, intervals between prefills, a small budget of tokens."""
    for engine in vllm_engines(world):
        yield from _admission(engine, world, config)


def _admission(engine: Engine, world: World, config: Config) -> Iterator[Finding]:
    line = engine.line
    sessions = sessions_per_engine(engine, world, config)
    interval = line.integer("prefill_schedule_interval")
    if isinstance(interval, Known) and interval.value > 1:
        what = f"prefill_schedule_interval is {interval.value}: prompts start only every {interval.value} steps"
        yield THROTTLE.error(interval.place, what, "leave --prefill-schedule-interval out")
    at_once = engine.workload.at_once
    if isinstance(at_once, Known) and isinstance(sessions, Known) and 0 < at_once.value < sessions.value:
        what = f"containerConcurrency is {at_once.value}, below {sessions.value} sessions per engine ({sessions.text})"
        yield THROTTLE.error(at_once.place, what, "leave containerConcurrency out")
    queued = line.option("max_num_queued_reqs")
    limit = queued.value if isinstance(queued, Known) and isinstance(queued.value, int) else None
    if queued is not None and limit is not None and isinstance(sessions, Known) and limit < sessions.value:
        what = f"max_num_queued_reqs is {limit}, below {sessions.value} sessions per engine ({sessions.text})"
        yield THROTTLE.error(queued.place, what, f"at least {sessions.value}")
    budget = line.integer("max_num_batched_tokens")
    if isinstance(budget, Unknown):
        yield THROTTLE.unknown("max_num_batched_tokens", budget)
    elif budget is not None and isinstance(sessions, Known) and budget.value <= sessions.value:
        what = f"max_num_batched_tokens is {budget.value}: {sessions.value} decoding sessions leave no room for prompts"
        yield THROTTLE.error(budget.place, what, "2048")


def suspects(world: World, config: Config) -> Iterator[Finding]:
    """Containers that look like engines and can't be read."""
    del config
    for suspect in world.suspects:
        who = f"{suspect.what} looks like an engine, but what it runs"
        fix = "write the command line in the manifest, add the ConfigMap that holds its script, or render the chart"
        yield SUSPECT.unknown(who, suspect.unknown, fix)


def simulated(world: World, config: Config) -> Iterator[Finding]:
    """A simulation must say so by label; then it is listed."""
    for engine in world.engines:
        if engine.software is not Software.SIMULATED or "simulated" in config.engines:
            continue
        if engine.workload.pod.labels.get(LABEL) == "simulated":
            what = f"exempt: {engine.workload.name} declares itself a simulation ({LABEL}: simulated)"
            yield SIMULATION.note(engine.place, what, "never where people are served")
        else:
            what = f"{engine.workload.name} runs the simulated engine and doesn't say so"
            yield SIMULATION.error(engine.place, what, f"vllm, or the pod label {LABEL}: simulated")


def other_engines(world: World, config: Config) -> Iterator[Finding]:
    """Other software: static batching is refused; the rest is accepted where shown and where agreed to."""
    for engine in world.engines:
        judge = JUDGES.get(engine.software)
        if judge is None:
            continue
        shown, place_or_reason = judge(engine)
        name = engine.software.value
        if shown is False:
            yield STATIC.error(engine.line.place, f"{name}: {place_or_reason}", "iteration-level (in-flight) batching")
        elif name not in config.engines:
            how = "batches per iteration as configured" if shown else place_or_reason
            what = f"{name} isn't among the allowed engines ({', '.join(config.engines)}); it {how}"
            yield ENGINE.error(engine.line.place, what, f"vllm, or `engines: [..., {name}]` in the configuration")
        elif shown is None:
            unknown = Unknown(f"{name} {place_or_reason}", engine.line.place)
            yield STATIC.unknown("whether it batches per iteration", unknown, "show it in the configuration")


Shown = tuple[bool | None, str]
"""Whether the configuration shows iteration-level batching: yes, no, or not at all; and what it says."""


def _given(engine: Engine, *names: str) -> str | None:
    for name in names:
        found = engine.line.given.get(name)
        if isinstance(found, Known):
            return str(found.value)
        variable = engine.env.get(name.upper())
        if isinstance(variable, Known):
            return variable.value
    return None


def _tgi(engine: Engine) -> Shown:
    size = _given(engine, "max_batch_size")
    if size == "1":
        return False, "MAX_BATCH_SIZE 1 is one sequence at a time"
    # Its launcher has no request-level mode since 0.8; only the batch's bounds can be set.
    return (
        (True, "")
        if "model_id" in engine.line.given or "MODEL_ID" in engine.env
        else (None, "doesn't show how it batches")
    )


def _tensorrt(engine: Engine) -> Shown:
    size = _given(engine, "max_batch_size")
    kind = (_given(engine, "batching_type", "batching_strategy", "gpt_model_type") or "").lower()
    if kind in {"static", "v1"} or size == "1":
        return False, f"batching is {kind or 'one sequence at a time'}"
    if engine.software is Software.TENSORRT_LLM or "inflight" in kind:
        return True, ""
    return None, "doesn't show how it batches"


def _sglang(engine: Engine) -> Shown:
    return (False, "max_running_requests is 1") if _given(engine, "max_running_requests") == "1" else (True, "")


def _llama_cpp(engine: Engine) -> Shown:
    given = engine.line.given
    if "no_cont_batching" in given or "nocb" in given:
        return False, "--no-cont-batching decodes requests one batch after the other"
    if _given(engine, "parallel", "np") in {None, "1"}:
        return False, "--parallel 1 is one sequence at a time"
    return True, ""


def _transformers(engine: Engine) -> Shown:
    if (_given(engine, "backend") or "").lower() in {"vllm", "auto"}:
        return True, ""
    if "continuous_batching" in engine.line.given:
        return True, ""
    return False, "generates one request after the other, or batches per request"


def _torchserve(engine: Engine) -> Shown:
    del engine
    return False, "batches requests before the model runs, and answers when the whole batch is done"


def _lmdeploy(engine: Engine) -> Shown:
    return (False, "max_batch_size is 1") if _given(engine, "max_batch_size") == "1" else (True, "")


def _ollama(engine: Engine) -> Shown:
    parallel = _given(engine, "ollama_num_parallel")
    if parallel is None or not parallel.isdigit():
        return None, "doesn't show how it batches"
    return (False, "OLLAMA_NUM_PARALLEL 1 is one sequence at a time") if int(parallel) <= 1 else (True, "")


def _djl(engine: Engine) -> Shown:
    mode = (_given(engine, "option.rolling_batch", "option_rolling_batch") or "").lower()
    if mode == "disable":
        return False, "its rolling batch is disabled, so it batches per request"
    return (True, "") if mode else (None, "doesn't show how it batches")


def _by_its_image(engine: Engine) -> Shown:
    del engine
    return None, "doesn't show how it batches: its image decides"


JUDGES: dict[Software, Callable[[Engine], Shown]] = {
    Software.TGI: _tgi,
    Software.TENSORRT_LLM: _tensorrt,
    Software.TRITON: _tensorrt,
    Software.SGLANG: _sglang,
    Software.LLAMA_CPP: _llama_cpp,
    Software.TRANSFORMERS: _transformers,
    Software.TORCHSERVE: _torchserve,
    Software.LMDEPLOY: _lmdeploy,
    Software.OLLAMA: _ollama,
    Software.DJL: _djl,
    Software.FASTCHAT: _by_its_image,
    Software.NIM: _by_its_image,
}

RULES = (iteration_level, sequence_limit, chunked_prefill, admission, suspects, simulated, other_engines)
