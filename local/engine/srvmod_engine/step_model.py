"""How long one engine step lasts.

The scheduler describes a step, a StepModel answers with its duration; nothing else in the simulation knows where
times come from. Models are plugged in by name (SRVMOD_SIM_STEP_MODEL=module:function); the default is in `hardware`.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from srvmod_engine.errors import ConfigError

if TYPE_CHECKING:
    from srvmod_engine.config import EngineConfig


@dataclass(frozen=True, slots=True)
class StepBatch:
    """The work of one step (counts of sequences and tokens)."""

    decode_seqs: int
    """Sequences that get one token each."""
    decode_context: int
    """Sum of their context lengths: KV that is read."""
    prefill_tokens: int
    """Prompt tokens computed in this step, over all chunks."""
    prefill_context: int
    """Sum over chunks of chunk length times the context before and within it: attention work."""
    prefill_seqs: int
    """Sequences with a chunk in this step."""


class StepModel(Protocol):
    """Duration of a step on the pretended hardware."""

    def seconds(self, batch: StepBatch) -> float:
        """Duration of one step, seconds, at least 0."""
        ...


@dataclass(frozen=True)
class LinearStepModel:
    """Constant plus a share per decoding sequence and per prompt token: times that a test or a bench knows."""

    base: float
    per_sequence: float
    per_prefill_token: float

    def seconds(self, batch: StepBatch) -> float:
        """See StepModel."""
        return self.base + self.per_sequence * batch.decode_seqs + self.per_prefill_token * batch.prefill_tokens


def linear(config: "EngineConfig") -> StepModel:
    """A model from SRVMOD_SIM_STEP_MS, …_STEP_PER_SEQ_US and …_STEP_PER_PREFILL_TOKEN_US."""
    sim = config.sim
    return LinearStepModel(sim.step_ms / 1e3, sim.step_per_seq_us / 1e6, sim.step_per_prefill_token_us / 1e6)


def load_step_model(config: "EngineConfig") -> StepModel:
    """Build the configured step model. Raises ConfigError when the name doesn't lead to a function."""
    name = config.sim.step_model
    module, _, function = name.partition(":")
    try:
        factory: Callable[[EngineConfig], Any] = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigError(f"SRVMOD_SIM_STEP_MODEL={name!r}: {error}; expected module:function") from None
    return factory(config)
