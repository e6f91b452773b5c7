"""How many engines and nodes a stack runs, and the engine's limits that follow from it."""

import math
from dataclasses import dataclass, replace

from srvmod.capacity import Layout, Limit, Plan, Prediction, Slo, Traffic, misses, plan, predict
from srvmod.capacity.speculation import Batches, drafter_shape, schedule
from srvmod.contract import MODELS, Milliseconds, ModelShape
from srvmod.infra.settings.serving import EngineSettings, ModelSettings, SloSettings, TrafficSettings
from srvmod.infra.settings.speculation import SpeculationSettings

ROWS = 8
"""vLLM captures graphs for batches in multiples of 8; a sequence limit off that grid falls back to eager."""
BURST = 1.5
"""Sessions above the mean that an engine takes before requests queue: balancing isn't exact."""
FEWEST_SEQUENCES = 64
MOST_ROUNDS = 16
"""Rounds of plan and sequence limit; two or three are enough unless few engines carry very many sessions."""


@dataclass(frozen=True)
class Sizing:
    """Engines, nodes and sequence limits of a stack. The prediction is for the fewest engines at peak traffic."""

    plan: Plan
    """What the traffic needs, without overrides."""
    min_engines: int
    max_engines: int
    max_nodes: int
    sessions_per_engine: int
    prediction: Prediction
    missed: tuple[Limit, ...]
    """Targets that `min_engines` misses at peak traffic; not empty only when the setting is below the plan."""
    drafts: tuple[Batches, ...]
    """Tokens that are drafted by batch size; empty without speculative decoding."""
    max_num_seqs: int
    """Sequence limit of an engine: its sessions with one engine lost, half as many again, in eights."""

    @property
    def min_nodes(self) -> int:
        """Nodes that the fewest engines fill."""
        return math.ceil(self.min_engines / self.plan.layout.engines_per_node)

    @property
    def cudagraph_capture_size(self) -> int:
        """Most rows with a captured CUDA graph. Beyond vLLM's default of 512 decoding would be eager; each draft that
        is checked is a row."""
        return graph_rows(self.max_num_seqs, self.drafts)

    @property
    def holds(self) -> bool:
        """Whether the fewest engines hold the latency targets at peak traffic."""
        return not self.missed


def layout_of(model: ModelSettings, engine: EngineSettings) -> Layout:
    """The capacity room's view of an engine's settings; its sequence limit follows from the plan (`plan_limited`)."""
    asked = engine.speculation
    return Layout(
        tensor_parallel_size=engine.tensor_parallel_size,
        engines_per_node=engine.engines_per_node,
        kv_cache_dtype=model.effective_kv_cache_dtype,
        max_num_batched_tokens=engine.max_num_batched_tokens,
        draft=drafter_shape(asked.method, MODELS[model.id]) if asked else None,
    )


def plan_limited(
    mix: Traffic, shape: ModelShape, layout: Layout, targets: Slo, asked: SpeculationSettings | None = None
) -> Plan:
    """The plan with the sequence limit and CUDA graphs that follow from it: both take memory that contexts could have.

    Raises CapacityError when no fleet holds the targets.
    """
    planned = plan(mix, shape, layout, targets)
    for _ in range(MOST_ROUNDS):
        limit = _sequence_limit(mix.sessions, planned.engines)
        limited = _limited(layout, limit, _drafts(asked, shape, layout, mix, limit))
        if limited == planned.layout:
            break
        again = plan(mix, shape, limited, targets)
        if limited.max_num_seqs < planned.layout.max_num_seqs and again.engines != planned.engines:
            break  # Fewer engines have a higher limit, so it would go back and forth; the plan with less room stands.
        planned = again
    return planned


def graph_rows(limit: int, drafts: tuple[Batches, ...]) -> int:
    """Rows of the largest step with a CUDA graph: all sequences, or those that draft with a row for each draft."""
    drafted = max((batches.last * (batches.tokens + 1) for batches in drafts), default=0)
    return math.ceil(max(limit, drafted) / ROWS) * ROWS


def _limited(layout: Layout, limit: int, drafts: tuple[Batches, ...]) -> Layout:
    """The layout with a sequence limit; vLLM takes none above the token budget, which `budget_holds_a_step` tells."""
    possible = min(limit, layout.max_num_batched_tokens)
    return replace(layout, max_num_seqs=possible, graph_rows=graph_rows(possible, drafts))


def traffic_of(traffic: TrafficSettings) -> Traffic:
    """The capacity room's view of the traffic mix."""
    return Traffic(
        sessions=traffic.sessions,
        prompt_tokens=traffic.prompt_tokens,
        output_tokens=traffic.output_tokens,
        prefix_hit_rate=traffic.prefix_hit_rate,
        tokens_per_second=traffic.tokens_per_second,
    )


def size(
    traffic: TrafficSettings,
    model: ModelSettings,
    slo: SloSettings,
    engine: EngineSettings,
    max_nodes: int | None = None,
) -> Sizing:
    """Plan the fleet, then apply the overrides. Raises CapacityError when no fleet holds the targets."""
    shape: ModelShape = MODELS[model.id]
    layout = layout_of(model, engine)
    mix = traffic_of(traffic)
    targets = Slo(itl_p95=Milliseconds(slo.itl_p95_ms), ttft=Milliseconds(slo.ttft_ms))
    planned = plan_limited(mix, shape, layout, targets, engine.speculation)
    fewest = engine.min_engines or planned.engines
    most = engine.max_engines or _half_as_many_again(max(fewest, planned.engines), layout.engines_per_node)
    share = math.ceil(mix.sessions / fewest)
    limit = _sequence_limit(mix.sessions, fewest)
    drafts = _drafts(engine.speculation, shape, layout, mix, limit)
    expected = predict(mix, shape, _limited(layout, limit, drafts), share)
    return Sizing(
        plan=planned,
        min_engines=fewest,
        max_engines=most,
        max_nodes=max_nodes or math.ceil(most / layout.engines_per_node),
        sessions_per_engine=share,
        prediction=expected,
        missed=tuple(misses(expected, mix, targets)),
        drafts=drafts,
        max_num_seqs=limit,
    )


def _drafts(
    asked: SpeculationSettings | None, shape: ModelShape, layout: Layout, mix: Traffic, limit: int
) -> tuple[Batches, ...]:
    if asked is None:
        return ()
    return schedule(shape, layout, mix, asked.drafting, most_sequences=limit)


def _half_as_many_again(engines: int, per_node: int) -> int:
    """Room for the scaler, in whole nodes."""
    return math.ceil(engines * 1.5 / per_node) * per_node


def _sequence_limit(sessions: int, engines: int) -> int:
    survivors = max(1, engines - 1)
    wanted = max(FEWEST_SEQUENCES, math.ceil(sessions / survivors * BURST))
    return math.ceil(wanted / ROWS) * ROWS
