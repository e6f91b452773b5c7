"""Options of the simulation itself. They are environment variables, so that the command line stays vLLM's own."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from srvmod_engine.errors import ConfigError

_PREFIX: Final = "SRVMOD_SIM_"


@dataclass(frozen=True)
class SimOptions:
    """How the simulated machine behaves. Field `x_y` is read from SRVMOD_SIM_X_Y."""

    step_model: str = "srvmod_engine.hardware:capacity"
    """`module:function` that builds the step model; the function takes the EngineConfig. The default gives the step
    times of the project's capacity model; srvmod_engine.step_model:linear those of the three options below."""
    time_scale: float = 1.0
    """Every step lasts this many times as long as the model says (0.1 is ten times as fast as real)."""
    step_ms: float = 18.0
    """linear step model: duration of an empty step, milliseconds."""
    step_per_seq_us: float = 15.0
    """linear step model: added per decoding sequence, microseconds."""
    step_per_prefill_token_us: float = 35.0
    """linear step model: added per prompt token in the step, microseconds."""
    send_pace_us: float = 24.0
    """Within a step each client's token leaves this many microseconds after the one before; 0: as fast as possible."""
    first_token_wait: float = 1.0
    """Times what measured servers let a request wait beyond its own prompt's steps (see front_end); 0: only for the
    step in progress."""
    seed: int = 1
    """What those waits are drawn from."""
    answer_tokens: int = 256
    """Length around which answers end by themselves (between half and one and a half of it), tokens."""
    instance: str = "p5.48xlarge"
    """Machine whose GPUs are pretended, of those that the contract describes."""
    drain_health: int = 200
    """Status of /health while the engine drains. vLLM 0.33.0 goes on answering 200, which is why pods need a preStop;
    503 shows what a readiness that turns would change."""
    start_seconds: float = 0.0
    """Pretended load and warm-up before the port opens, seconds."""


def read_options(env: Mapping[str, str]) -> SimOptions:
    """Read SRVMOD_SIM_*. Raises ConfigError naming every variable that is unknown or out of range."""
    known = {f"{_PREFIX}{field.name.upper()}": field for field in fields(SimOptions)}
    elsewhere = {"SRVMOD_SIM_ISLANDS"}  # read by islands.check_island
    values: dict[str, str | float | int] = {}
    problems: list[str] = []
    for name, text in sorted(env.items()):
        if not name.startswith(_PREFIX) or name in elsewhere:
            continue
        field = known.get(name)
        if field is None:
            problems.append(f"{name}: unknown; known are {', '.join(sorted(known))}")
        elif field.type is str or field.type == "str":
            values[field.name] = text
        else:
            try:
                number = int(text) if isinstance(field.default, int) else float(text)
            except ValueError:
                problems.append(f"{name}={text!r}: not a number")
                continue
            zero_allowed = field.name not in {"answer_tokens", "time_scale"}
            if not math.isfinite(number) or number < 0 or (number == 0 and not zero_allowed):
                problems.append(f"{name}={text!r}: must be {'at least' if zero_allowed else 'above'} 0")
                continue
            values[field.name] = number
    if problems:
        raise ConfigError("; ".join(problems))
    return SimOptions(**values)  # type: ignore[arg-type]  # checked above against the fields' own types
