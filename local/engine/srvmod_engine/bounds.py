"""How much one request may ask for: the original's environment variables, with its own defaults."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from srvmod_engine.errors import ConfigError

SEQUENCES: Final = "VLLM_MAX_N_SEQUENCES"
PROMPTS: Final = "VLLM_MAX_COMPLETION_PROMPTS"


@dataclass(frozen=True)
class Bounds:
    """Without them one small request makes the server build sequences until its memory is gone."""

    sequences: int = 16_384
    """Largest `n`."""
    prompts: int = 1_024
    """Longest list of prompts of a text completion."""


def read_bounds(env: Mapping[str, str]) -> Bounds:
    """Read both. Raises ConfigError naming each that isn't a whole number of at least 1."""
    found: dict[str, int] = {}
    problems: list[str] = []
    for name, default in ((SEQUENCES, Bounds.sequences), (PROMPTS, Bounds.prompts)):
        text = env.get(name, str(default))
        try:
            found[name] = int(text)
        except ValueError:
            found[name] = 0
        if found[name] < 1:
            problems.append(f"{name}={text!r}: must be a whole number of at least 1")
    if problems:
        raise ConfigError("; ".join(problems))
    return Bounds(found[SEQUENCES], found[PROMPTS])
