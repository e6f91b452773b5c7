"""Reads what an environment needs, as the program rendered it."""

from pathlib import Path

import yaml
from pydantic import ValidationError

from srvmod.contract.account_needs import AccountNeeds, digest_of
from srvmod.contract.stack_files import unknown_environment

PROJECT = "srvmod"
NEEDS = "account.json"


class NeedsError(Exception):
    """The needs can't be read or are out of date: which file, and what to do."""


def read(root: Path, env: str) -> AccountNeeds:
    """The needs of `env`. Raises NeedsError, also when its stack file has changed since they were rendered."""
    if problem := unknown_environment(env, root):
        raise NeedsError(problem)
    file = root / "manifests" / env / NEEDS
    fix = f"srvmod render --env {env}"
    try:
        needs = AccountNeeds.model_validate_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NeedsError(f"{file.relative_to(root)}: is missing; fix: {fix}") from None
    except ValidationError as error:
        places = ", ".join(".".join(map(str, problem["loc"])) or "the file" for problem in error.errors())
        raise NeedsError(f"{file.relative_to(root)}: isn't what this version reads ({places}); fix: {fix}") from None
    if needs.settings_digest != _digest(root / f"Pulumi.{env}.yaml"):
        raise NeedsError(f"Pulumi.{env}.yaml has changed since {file.relative_to(root)} was rendered; fix: {fix}")
    return needs


def _digest(file: Path) -> str:
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise NeedsError(f"{file.name}: isn't YAML: {error}") from None
    config = document.get("config") if isinstance(document, dict) else None
    if not isinstance(config, dict):
        raise NeedsError(f"{file.name}: has no mapping 'config'")
    return digest_of(config, PROJECT)
