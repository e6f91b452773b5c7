"""Settings inside a Pulumi program, from the config that the engine passed."""

import json
from pathlib import Path
from typing import Any

from srvmod.infra.settings.loading import load
from srvmod.infra.settings.names import PRODUCT, SECRET_KEYS
from srvmod.infra.settings.places import Lines, Places
from srvmod.infra.settings.problems import Problem, SettingsError
from srvmod.infra.settings.settings import Settings
from srvmod.infra.settings.stackfile import read_lines


def from_pulumi_config() -> Settings:
    """Settings of the running stack. Raises SettingsError with every problem.

    Secret settings (`srvmod:apiKeys`) are left to `pulumi.Config().require_secret_object`; here it is only checked
    that they are encrypted.
    """
    import pulumi  # only programs need Pulumi, settings don't

    stack = pulumi.get_stack()
    values = _values()
    file = Path(pulumi.runtime.settings.get_root_directory() or ".") / f"Pulumi.{stack}.yaml"
    lines = read_lines(file)
    return from_values(values, _secret_keys(), stack=stack, source=file, lines=lines)


def from_values(values: dict[str, Any], secret_keys: set[str], *, stack: str, source: Path, lines: Lines) -> Settings:
    """Settings from config as the engine passes it: qualified key to text, JSON where it is structured."""
    places = Places(stack, source, lines)
    raw: dict[str, object] = {}
    problems: list[Problem] = []
    for key, value in values.items():
        namespace, _, name = key.partition(":")
        if namespace != PRODUCT:
            continue
        if name in SECRET_KEYS:
            if key not in secret_keys:
                problems.append(
                    places.problem(
                        (name,), "", "is a secret in the clear", f"pulumi config set --secret {name}, with a new value"
                    )
                )
        elif key in secret_keys:
            raw[name] = {"secure": True}
        else:
            raw[name] = _structured(value)
    try:
        settings = load(raw, stack=stack, source=source, lines=lines)
    except SettingsError as error:
        raise SettingsError([*problems, *error.problems], stack) from None
    if problems:
        raise SettingsError(problems, stack)
    return settings


def _structured(value: object) -> object:
    """Structured config travels as JSON; anything else is text that `load` will refuse by name."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _values() -> dict[str, Any]:
    from pulumi.runtime import config

    return {**config.get_config_env(), **config.CONFIG.get()}


def _secret_keys() -> set[str]:
    from pulumi.runtime import config

    return {*config.get_config_secret_keys_env(), *(key for key in _values() if config.is_config_secret(key))}
