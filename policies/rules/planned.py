"""Engines for the traffic that they say they are for: the capacity model's answer, beside who accepted another."""

from __future__ import annotations

import re
from collections.abc import Iterator

from srvmod.capacity import CapacityError, Layout, Slo, Traffic, misses, plan, predict
from srvmod.contract import Clause, KvCacheDtype, ModelShape
from srvmod.policies.config import Config
from srvmod.policies.facts import Engine, Known, World
from srvmod.policies.rules.batching import DEFAULT_MAX_NUM_SEQS
from srvmod.policies.rules.finding import Finding, Maker
from srvmod.policies.rules.memory import DTYPES, shape_of
from srvmod.policies.rules.subjects import SESSIONS_ANNOTATION, sessions_per_engine, vllm_engines

PLANNED = Maker(
    Clause.INV_SRVMOD_02, "planned", "with all sessions there, the engines are slower than the targets of the clause"
)
TRAFFIC_ANNOTATION = "srvmod.dev/traffic"
"""Mean prompt and answer in tokens, and the share of prompts that is found cached: 512/512/0.3."""
WAIVER_ANNOTATION = "srvmod.dev/plan-waiver"
"""Who accepts that the plan misses its targets, and why."""
ENGINES_ANNOTATION = "srvmod.dev/engines"
COUNT = re.compile(r"[1-9][0-9]{0,8}")
MIX = re.compile(r"(?P<prompt>[1-9][0-9]{0,6})/(?P<output>[1-9][0-9]{0,6})(/(?P<hit>0(\.[0-9]{1,6})?))?")


def planned(world: World, config: Config) -> Iterator[Finding]:
    """The declared traffic keeps its latency on the fewest engines; where it doesn't, whoever accepted it is named."""
    for engine in vllm_engines(world):
        declared = engine.workload.annotations.get(TRAFFIC_ANNOTATION)
        if declared is not None:
            yield from _judged(engine, declared, world, config)


def _judged(engine: Engine, declared: str, world: World, config: Config) -> Iterator[Finding]:
    place = engine.workload.place
    mix = MIX.fullmatch(declared)
    if mix is None:
        what = f"annotation {TRAFFIC_ANNOTATION} = {declared!r} isn't prompt/output tokens: nothing is planned by it"
        yield PLANNED.warning(place, what, f"{TRAFFIC_ANNOTATION}: 512/512")
        return
    share, shape = _share(engine, world, config), shape_of(engine.line.model, config)
    if share is None or shape is None:
        return  # MC-CB-01 and MC-KV-01 speak of it
    try:
        traffic = Traffic(share, int(mix["prompt"]), int(mix["output"]), float(mix["hit"] or 0))
        layout = _layout(engine)
        missed = [limit.value for limit in misses(predict(traffic, shape, layout, share), traffic, Slo())]
    except CapacityError:
        return  # a layout that other rules refuse
    if not missed:
        return
    waiver = engine.workload.annotations.get(WAIVER_ANNOTATION)
    said = f"; accepted by {waiver}" if waiver else "; nobody is named who accepts it"
    what = f"{share} sessions per engine at {declared} tokens miss: {', '.join(missed)}{said}"
    yield PLANNED.warning(place, what, _fix(traffic, shape, layout))


def _share(engine: Engine, world: World, config: Config) -> int | None:
    """Sessions per engine; without a scaler and replicas, by the least engines that the object notes."""
    known = sessions_per_engine(engine, world, config)
    if isinstance(known, Known):
        return known.value
    notes = engine.workload.annotations
    sessions, engines = notes.get(SESSIONS_ANNOTATION, ""), notes.get(ENGINES_ANNOTATION, "")
    if not (COUNT.fullmatch(sessions) and COUNT.fullmatch(engines)):
        return None
    return -(-int(sessions) // int(engines))


def _layout(engine: Engine) -> Layout:
    budget, dtype = engine.line.integer("max_num_batched_tokens"), engine.line.string("kv_cache_dtype")
    limit = engine.line.integer("max_num_seqs")
    named = dtype.value if isinstance(dtype, Known) else "auto"
    return Layout(
        kv_cache_dtype=DTYPES.get(named, KvCacheDtype.BF16),
        max_num_batched_tokens=budget.value if isinstance(budget, Known) else Layout().max_num_batched_tokens,
        max_num_seqs=limit.value if isinstance(limit, Known) else DEFAULT_MAX_NUM_SEQS,
    )


def _fix(traffic: Traffic, shape: ModelShape, layout: Layout) -> str:
    try:
        most = plan(traffic, shape, layout).most_sessions_per_engine
    except CapacityError:
        return "shorter prompts: no number of engines holds the targets"
    return f"engines for at most {most} sessions each, or engine.planWaiver with a name"


RULES = (planned,)
