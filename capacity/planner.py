"""From a traffic mix to engines and nodes: how many sessions one engine carries within the latency targets."""

import math
from dataclasses import dataclass, replace

from srvmod.capacity.layout import CapacityError, Layout, Slo, Traffic
from srvmod.capacity.memory import KvRoom, kv_room
from srvmod.capacity.parameters import StepParameters, calibration
from srvmod.capacity.steady import Limit, Prediction, misses, predict_steady
from srvmod.capacity.steptime import StepModel
from srvmod.contract import Milliseconds, ModelShape


@dataclass(frozen=True)
class Interval:
    """A figure and what it lies between in 80 % of the cases: the model's error on stacks that it hadn't seen."""

    low: float
    likely: float
    high: float


@dataclass(frozen=True)
class Plan:
    """A fleet for a traffic mix."""

    traffic: Traffic
    slo: Slo
    layout: Layout
    engines_needed: int
    """Fewest engines that hold the targets."""
    engines: int
    """Engines that run: whole nodes, since a node is paid for whole."""
    nodes: int
    sessions_per_engine: int
    most_sessions_per_engine: int
    """Sessions at which the first limit is reached."""
    binds: Limit
    prediction: Prediction
    """Of one engine with `sessions_per_engine`."""
    kv_room: KvRoom

    @property
    def tokens_per_second(self) -> float:
        """Predicted rate of the whole fleet."""
        return self.traffic.sessions / self.prediction.itl_mean_ms * 1e3

    @property
    def head_room(self) -> float:
        """Sessions that an engine could take beyond its share, as a share of it."""
        return self.most_sessions_per_engine / self.sessions_per_engine - 1

    def usd_per_million_tokens(self, usd_per_node_hour: float) -> float:
        """Cost of the nodes per million output tokens while all sessions stream."""
        return usd_per_node_hour * self.nodes / (self.tokens_per_second * 3_600 / 1e6)


@dataclass(frozen=True)
class NodeRange:
    """Nodes if steps are as fast as the model's error allows, as likely, and as slow. `high` is None when no number
    of engines would hold the targets then."""

    low: int
    likely: int
    high: int | None


def times_between(value: float) -> Interval:
    """A predicted time with its interval."""
    band = calibration().itl
    return Interval(value * band.low, value, value * band.high)


def first_token_between(value: float, *, tail: bool) -> Interval:
    """A predicted time to first token with its interval: of its median, or of its tail, which is wider."""
    band = calibration().ttft_p99 if tail else calibration().ttft
    return Interval(value * band.low, value, value * band.high)


def rate_between(value: float) -> Interval:
    """A predicted rate with its interval: the inverse of the time's."""
    band = calibration().itl
    return Interval(value / band.high, value, value / band.low)


def predict(traffic: Traffic, model: ModelShape, layout: Layout, sessions: int) -> Prediction:
    """Steady state of one engine that decodes `sessions` streams of the mix."""
    return predict_steady(traffic, StepModel(model, layout), layout, kv_room(model, layout), sessions)


def plan(
    traffic: Traffic,
    model: ModelShape,
    layout: Layout | None = None,
    slo: Slo | None = None,
    parameters: StepParameters | None = None,
) -> Plan:
    """Fewest engines, on whole nodes, that hold the targets for the mix.

    Raises CapacityError when no number of engines does, or when the mix doesn't fit the model.
    """
    layout = layout or Layout()
    slo = slo or Slo()
    layout.check_model(model)
    length = traffic.prompt_tokens + traffic.output_tokens
    if length > model.context_tokens:
        raise CapacityError(
            "prompt_tokens",
            traffic.prompt_tokens,
            f"with {traffic.output_tokens} output tokens is longer than the context of {model.id}",
            f"prompt and output together at most {model.context_tokens} tokens",
        )
    engine, room = StepModel(model, layout, parameters), kv_room(model, layout)
    most, binds = _most_sessions(traffic, engine, layout, room, slo)
    needed = math.ceil(traffic.sessions / most)
    nodes = math.ceil(needed / layout.engines_per_node)
    engines = nodes * layout.engines_per_node
    share = math.ceil(traffic.sessions / engines)
    return Plan(
        traffic=traffic,
        slo=slo,
        layout=layout,
        engines_needed=needed,
        engines=engines,
        nodes=nodes,
        sessions_per_engine=share,
        most_sessions_per_engine=most,
        binds=binds,
        prediction=predict_steady(traffic, engine, layout, room, share),
        kv_room=room,
    )


def node_range(planned: Plan, model: ModelShape) -> NodeRange:
    """The nodes of a plan when every step takes the shortest and the longest time that the model's error allows.

    A step that takes longer by a factor is the same as targets that are tighter by it.
    """
    band = calibration().itl
    low = _nodes_if(planned, model, band.low)
    return NodeRange(min(low or planned.nodes, planned.nodes), planned.nodes, _nodes_if(planned, model, band.high))


def _nodes_if(planned: Plan, model: ModelShape, factor: float) -> int | None:
    slo, traffic = planned.slo, planned.traffic
    rate = traffic.tokens_per_second
    tighter = replace(slo, itl_p95=Milliseconds(slo.itl_p95 / factor), ttft=Milliseconds(slo.ttft / factor))
    faster = replace(traffic, tokens_per_second=rate * factor if rate else None)
    try:
        return plan(faster, model, planned.layout, tighter).nodes
    except CapacityError:
        return None


def _most_sessions(traffic: Traffic, engine: StepModel, layout: Layout, room: KvRoom, slo: Slo) -> tuple[int, Limit]:
    """Sessions that one engine carries, and the limit that one more would pass. Every limit only tightens."""

    def missed(sessions: int) -> tuple[Limit, ...]:
        return tuple(misses(predict_steady(traffic, engine, layout, room, sessions), traffic, slo))

    first = missed(1)
    if first:
        raise _impossible(first[0], predict_steady(traffic, engine, layout, room, 1), traffic, slo)
    low, high = 1, min(traffic.sessions, layout.max_num_batched_tokens) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if missed(middle) else (middle, high)
    if low == traffic.sessions:
        return low, Limit.SESSIONS
    return low, missed(low + 1)[0]


def _impossible(limit: Limit, alone: Prediction, traffic: Traffic, slo: Slo) -> CapacityError:
    """The error for a target that one session alone on an engine already misses."""
    if limit is Limit.ITL:
        floor = alone.itl(slo.per)
        problem = f"no number of engines reaches it: one session alone on an engine has {floor:.1f} ms"
        return CapacityError("itl_p95", slo.itl_p95, problem, f"at least {floor:.1f} ms")
    if limit is Limit.TTFT:
        floor = alone.ttft_p95_ms
        problem = f"no number of engines reaches it: one session alone on an engine has {floor:.0f} ms"
        return CapacityError("ttft", slo.ttft, problem, f"at least {floor:.0f} ms")
    if limit is Limit.THROUGHPUT:
        most = traffic.sessions / alone.itl_mean_ms * 1e3
        problem = f"{traffic.sessions} sessions can't get it: one alone on an engine gets a token every "
        problem += f"{alone.itl_mean_ms:.1f} ms"
        rate = traffic.tokens_per_second
        return CapacityError("tokens_per_second", rate, problem, f"at most {most:,.0f} for these sessions")
    if limit is Limit.PREFILL:
        problem = f"{traffic.output_tokens} output tokens per prompt leave too few steps to compute the prompt"
        return CapacityError(
            "prompt_tokens", traffic.prompt_tokens, problem, "shorter prompts, or a larger token budget"
        )
    problem = "one session alone doesn't fit in the KV cache"
    return CapacityError("prompt_tokens", traffic.prompt_tokens, problem, "shorter contexts")
