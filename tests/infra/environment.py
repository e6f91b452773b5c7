"""What the tests of the program share: settings and recorded graphs of the shipped environments."""

from functools import cache
from pathlib import Path

from srvmod.infra.render.environments import contents, graph_of
from srvmod.infra.render.recorder import Graph
from srvmod.infra.settings import Settings, load_stack_file

ROOT = Path(__file__).parents[2]
ENVIRONMENTS = ("local", "dev", "staging", "prod")


@cache
def settings_of(env: str) -> Settings:
    """Settings of a shipped environment."""
    return load_stack_file(ROOT / f"Pulumi.{env}.yaml")


@cache
def graph(env: str, *, known: bool = True) -> Graph:
    """Its graph, recorded once per test session; `known=False` as in a first preview."""
    return graph_of(settings_of(env), known=known)


def manifests(env: str) -> dict[str, str]:
    """What the recorded graph renders to: path below `manifests/<env>/` to content."""
    return contents(ROOT, settings_of(env), graph(env))
