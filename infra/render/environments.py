"""Renders environments into `manifests/` and compares them with what lies there."""

import difflib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from srvmod.contract.account_needs import digest_of
from srvmod.infra import identifiers
from srvmod.infra.aws.needs import account_needs
from srvmod.infra.program import declare
from srvmod.infra.render.manifests import files
from srvmod.infra.render.recorder import Graph, record
from srvmod.infra.settings import Settings, load_stack_file
from srvmod.infra.settings.names import PRODUCT

ACCOUNT_NEEDS = "account.json"
"""What the environment needs of its account; `srvmod preflight` reads it."""
DIFF_LINES = 12


@dataclass(frozen=True)
class Difference:
    """A file that isn't what rendering gives; `diff` shows the first lines of how."""

    path: Path
    what: str
    diff: str


def graph_of(settings: Settings, *, known: bool = True) -> Graph:
    """The graph that `settings` give. Keys are placeholders: they are masked anyway."""
    keys = {client: f"placeholder-key-of-{client}" for client in settings.gateway.api_clients}
    secrets = {identifiers.api_keys_secret(settings): json.dumps(keys)}
    return record(lambda: declare(settings), stack=settings.stack, known=known, secrets=secrets)


def rendered(root: Path, env: str) -> dict[str, str]:
    """Path below `manifests/<env>/` to content. Raises SettingsError with every problem of the stack's file."""
    settings = load_stack_file(root / f"Pulumi.{env}.yaml")
    return contents(root, settings, graph_of(settings))


def contents(root: Path, settings: Settings, graph: Graph) -> dict[str, str]:
    """What `rendered` gives for a stack file's settings and the graph that they gave."""
    env = settings.stack
    config = yaml.safe_load((root / f"Pulumi.{env}.yaml").read_text(encoding="utf-8"))["config"]
    needs = account_needs(settings, digest_of(config, PRODUCT)).to_json()
    return dict(sorted({**files(graph, env), ACCOUNT_NEEDS: needs}.items()))


def write(root: Path, env: str, made: dict[str, str]) -> Path:
    """Replace `manifests/<env>/` by what was rendered."""
    folder = root / "manifests" / env
    if folder.exists():
        shutil.rmtree(folder)
    for name, content in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    return folder


def differences(root: Path, env: str, made: dict[str, str]) -> Iterator[Difference]:
    """Files of `manifests/<env>/` that are missing, left over or different."""
    folder = root / "manifests" / env
    there = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted({*made, *there}):
        path = folder / name
        if name not in there:
            yield Difference(path, "is missing", "")
        elif name not in made:
            yield Difference(path, "is left over: nothing renders it", "")
        else:
            old = path.read_text(encoding="utf-8")
            if old != made[name]:
                yield Difference(path, "differs", _diff(old, made[name]))


def _diff(old: str, new: str) -> str:
    lines: Sequence[str] = list(
        difflib.unified_diff(old.splitlines(), new.splitlines(), "committed", "rendered", lineterm="", n=1)
    )
    rest = [f"... {len(lines) - DIFF_LINES} more lines"] if len(lines) > DIFF_LINES else []
    return "\n".join([*lines[:DIFF_LINES], *rest])
