"""The `srvmod` command: a thin shell over the rooms, whose commands are imported when asked for."""

from __future__ import annotations

import importlib
import sys

import typer

ROOMS = {
    "local": ("srvmod.local.commands", "the whole platform on one machine: up, status, down, env"),
    "render": ("srvmod.infra.commands", "write or check manifests/<environment>"),
    "bench": ("srvmod.infra.commands", "speed figures, as a table and JSON"),
    "plan": ("srvmod.infra.plan_commands", "engines, nodes, latency and cost of a traffic mix"),
    "claims": ("srvmod.capacity.commands", "the specification's numbers and sentences, each with a verdict"),
    "cost": ("srvmod.infra.cost_commands", "what environments cost, from the prices in their settings"),
    "images": ("srvmod.infra.images_commands", "container images of an environment, and how to mirror them"),
    "preflight": ("srvmod.ops.preflight.commands", "ask an AWS account whether it has what an environment needs"),
    "check": ("srvmod.policies.commands", "the specification's clauses on any manifests: files, folders, stdin"),
    "admission": ("srvmod.policies.admission.commands", "the clauses as admission policies: write or check the files"),
    "tools": ("srvmod.tools.commands", "find or build the pinned tools"),
}
BENCHES = (
    "srvmod.infra.commands",
    "srvmod.local.engine.bench.commands",
    "srvmod.capacity.commands",
    "srvmod.policies.commands",
)
"""Modules whose own commands `bench` are the group of this name."""


def add(app: typer.Typer, name: str) -> None:
    """Gives `app` one room's command, or its group of commands."""
    room = importlib.import_module(ROOMS[name][0])
    target = getattr(room, name, None)
    if name == "bench":
        target = typer.Typer(no_args_is_help=True)
        for module in BENCHES:
            target.registered_commands += importlib.import_module(module).bench.registered_commands
    if callable(target) and not isinstance(target, typer.Typer):
        app.command(name)(target)
    else:
        app.add_typer(room.app if target is None else target, name=name)


def main() -> None:
    """Entry point: imports only the room whose command was asked for (a start costs what it needs)."""
    name = next((word for word in sys.argv[1:] if not word.startswith("-")), "")
    app = typer.Typer(no_args_is_help=True, help=__doc__, add_completion=False)

    @app.callback()
    def root() -> None:
        """Interactive LLM serving on your own GPUs, as code."""

    if name in ROOMS:
        add(app, name)
    else:
        for command, (_, text) in ROOMS.items():
            app.command(command, help=text)(lambda: None)
    app()


if __name__ == "__main__":
    main()
