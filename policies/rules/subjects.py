"""Which engines a rule judges."""

from __future__ import annotations

from collections.abc import Iterator

from srvmod.policies.facts import Engine, Known, Software, World

VLLM = {Software.VLLM, Software.SIMULATED}
NOT_GENERATING = {"pooling", "draft"}


def pooling(engine: Engine) -> bool:
    """Whether an engine makes embeddings or scores: it streams nothing, so the clauses don't speak of it."""
    runner = engine.line.given.get("runner")
    return isinstance(runner, Known) and runner.value in NOT_GENERATING


def vllm_engines(world: World) -> Iterator[Engine]:
    """Engines that take vLLM's options and generate."""
    return (engine for engine in world.engines if engine.software in VLLM and not pooling(engine))
