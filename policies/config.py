"""What a check may be told: `--config FILE`, or the Pulumi pack's own configuration. Defaults are the contract's."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from srvmod.contract import LLAMA_3_70B, MODELS, P5_48XLARGE, SESSIONS, ModelShape
from srvmod.policies.engine_versions import DEFAULT_VERSION

Level = Literal["error", "warning", "off"]


class Shape(BaseModel):
    """Shape of a model that the contract doesn't know; counts as its config.json has them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    layers: Annotated[int, Field(gt=0, le=10_000)]
    hidden: Annotated[int, Field(gt=0, le=1_000_000)]
    heads: Annotated[int, Field(gt=0, le=10_000)]
    kv_heads: Annotated[int, Field(gt=0, le=10_000, alias="kvHeads")]
    head_dim: Annotated[int, Field(gt=0, le=10_000, alias="headDim")]
    ffn: Annotated[int, Field(gt=0, le=10_000_000)]
    vocabulary: Annotated[int, Field(gt=0, le=10_000_000)]
    context_tokens: Annotated[int, Field(gt=0, le=100_000_000, alias="contextTokens")]


class Config(BaseModel):
    """Numbers and choices of a check. Keys are as in the file (camelCase)."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    sessions: Annotated[int, Field(gt=0)] = SESSIONS.value
    """Sessions that all engines of a workload carry together at peak, where no annotation on it says otherwise."""
    model: str = LLAMA_3_70B.id
    """Model that engines serve from a folder; engines that name a model are judged by that name."""
    models: dict[str, Shape] = {}
    """Shapes of further models, by name."""
    instance_type: Annotated[str, Field(alias="instanceType")] = P5_48XLARGE.name
    engines: tuple[str, ...] = ("vllm",)
    """Engine software that may serve; a simulation that declares itself is listed, never silently accepted."""
    engine_version: Annotated[str, Field(alias="engineVersion")] = DEFAULT_VERSION
    whole: bool = False
    """The input is everything that is applied: what is missing in it doesn't exist."""
    levels: dict[str, Level] = {}
    """Level by clause or by clause/rule."""

    def shape(self, name: str) -> ModelShape | None:
        """A model's shape, if it is known."""
        own = self.models.get(name)
        if own is not None:
            return ModelShape(id=name, **own.model_dump())
        return MODELS.get(name)


class ConfigError(ValueError):
    """A configuration that can't be used; every problem is named."""


def load(path: Path) -> Config:
    """Read a configuration file (YAML or JSON). Raises ConfigError."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: {error}") from None
    return from_values(content or {}, str(path))


def from_values(content: Any, source: str) -> Config:
    """A configuration from plain values. Raises ConfigError."""
    try:
        # JSON mode: a list is a tuple there, and nothing else is converted.
        import json

        return Config.model_validate_json(json.dumps(content))
    except (TypeError, ValueError) as error:
        if not isinstance(error, ValidationError):
            raise ConfigError(f"{source}: {error}") from None
        lines = [
            f"{source}: {'.'.join(str(part) for part in problem['loc'])} = {problem['input']!r}: {problem['msg']}"
            for problem in error.errors()
        ]
        raise ConfigError("\n".join(lines)) from None
