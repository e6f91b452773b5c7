"""`srvmod local`: the whole platform on this machine."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from srvmod.local import facts
from srvmod.local.errors import LocalError, explain, not_root
from srvmod.local.interrupts import Interrupted, interruptible, undisturbed
from srvmod.local.paths import State, default_state

app = typer.Typer(help="The whole platform on one machine, with real parts.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout; progress goes to stderr.")]


WIDTH_ELSEWHERE = 140
"""Columns of tables that no terminal shows (a file, a pipe): whole names of nodes and pods."""


def console(*, stderr: bool = False) -> Console:
    """Shows text as it is: an ARN with ":secret:" in it is no emoji."""
    screen = Console(stderr=stderr, highlight=False, emoji=False)
    if not screen.is_terminal and "COLUMNS" not in os.environ:
        screen.width = WIDTH_ELSEWHERE
    return screen


class Steps:
    """Progress lines on stderr: elapsed seconds, step, what happens."""

    def __init__(self) -> None:
        self.console, self.began, self.last = console(stderr=True), time.monotonic(), ("", "")

    def __call__(self, step: str, what: str) -> None:
        if (step, what) != self.last:
            self.last = (step, what)
            self.console.print(
                f"[dim]{time.monotonic() - self.began:6.1f} s[/]  [bold]{step:<18}[/] {escape(what)}", soft_wrap=True
            )


def _fail(error: LocalError) -> typer.Exit:
    console(stderr=True).print(
        f"[red]error:[/] {escape(error.what)}\n[bold]fix:[/] {escape(error.fix)}", soft_wrap=True
    )
    return typer.Exit(1)


def _need_root() -> None:
    if os.geteuid() == 0:
        return
    why = "namespaces, mounts and cgroups of the stack's own need root"
    if sys.stdin.isatty():
        console(stderr=True).print(f"{why}: asking for sudo once")
        os.execvp("sudo", ["sudo", "--preserve-env", sys.executable, "-m", "srvmod.ops.cli", *sys.argv[1:]])
    raise not_root(why)


@contextlib.contextmanager
def _told(state: State, steps: Steps, left: Callable[[], str]) -> Iterator[None]:
    """Every way to fail becomes one message and an exit code; `left` says what an interruption leaves."""
    try:
        with interruptible():
            yield
    except Interrupted as error:
        with undisturbed():
            step = f" in step {steps.last[0]!r}" if steps.last[0] else ""
            console(stderr=True).print(escape(f"interrupted ({error}){step}: {left()}"), soft_wrap=True)
        raise typer.Exit(error.exit_code) from None
    except Exception as error:
        raise _fail(explain(error, state.root)) from error


def _left(state: State) -> str:
    """What an interrupted `up` leaves, in one line."""
    from srvmod.local.namespace import holders

    if not holders(state):
        return "nothing runs; `srvmod local up` begins again"
    return "what was started goes on running; `srvmod local up` goes on from here, `srvmod local down` ends it"


@app.command()
def up(json_output: Json = False) -> None:
    """Build what is missing, start everything, run the program, stream a first completion."""
    steps, state = Steps(), default_state()
    with _told(state, steps, lambda: _left(state)):
        from srvmod.local.first_completion import stream
        from srvmod.local.stack import LocalStack

        _need_root()
        stack = LocalStack(state, steps)
        stack.up()
        found = facts.load(state.facts_file)
        assert found
        steps("completion", "streaming the first one")
        completion = stream(found, state)
        result: dict[str, Any] = {
            **stack.status(),
            "completion": completion,
            "elapsedSeconds": round(time.monotonic() - steps.began, 1),
        }
        result["outputs"] = stack.outputs()
    if json_output:
        print(json.dumps(result, indent=1))
    else:
        _show(result)


@app.command()
def status(json_output: Json = False) -> None:
    """What runs now, asked from the parts themselves. Exit 0: all healthy, 1: something isn't, 3: no stack."""
    steps, state = Steps(), default_state()
    with _told(state, steps, lambda: "nothing was changed"):
        from srvmod.local.stack import LocalStack

        result = LocalStack(state, steps).status()
    if json_output:
        print(json.dumps(result, indent=1))
    elif result["running"]:
        _show(result)
    else:
        console().print(escape(result["problem"]), soft_wrap=True)
        _show_work(result)
    sick = [c for c in result["components"] if not c["healthy"]]
    raise typer.Exit(3 if not result["running"] else 1 if sick or result["problem"] else 0)


@app.command()
def down(json_output: Json = False) -> None:
    """End everything and remove what the stack made; caches and the last logs stay in the state folder."""
    steps, state = Steps(), default_state()
    with _told(state, steps, lambda: "not everything was removed; run `srvmod local down` again"):
        from srvmod.local.stack import LocalStack

        _need_root()
        was = LocalStack(state, steps).down()
    if json_output:
        print(json.dumps({"ended": was}))
    else:
        console().print("ended" if was else "there was no stack; nothing to end")


@app.command()
def env() -> None:
    """Shell lines that lead the plain `pulumi` and `kubectl` to the local stack: eval "$(srvmod local env)"."""
    from srvmod.local.pulumi_cli import environment
    from srvmod.tools import BIN

    state = default_state()
    with _told(state, Steps(), lambda: "nothing was changed"):
        found = facts.load(state.facts_file)
        if found is None:
            raise LocalError("no local stack", "run `srvmod local up` first")
    print(f"unset {' '.join(facts.OTHER_ACCOUNTS)}")
    for name, value in environment(state, found, BIN).items():
        print(f"export {name}={shlex.quote(value)}")


def _show(result: dict[str, Any]) -> None:
    screen = console()
    table = Table(
        *(Column(name, overflow="fold") for name in ("node", "instance", "ready", "weights", "engine", "island")),
        "engine ready",
        title="p5 nodes (simulated hardware)",
    )
    for node in result["nodes"]:
        base = (
            node["name"] + (" (pretended)" if node["pretended"] else ""),
            node["instanceType"],
            _mark(node["ready"]),
            _mark(node["weightsReady"]),
        )
        for index, engine in enumerate(node["engines"] or [None]):
            lead = base if index == 0 else ("", "", "", "")
            cells = (
                (
                    engine["name"],
                    "GPU " + ",".join(map(str, engine["gpus"])) if engine["gpus"] else "-",
                    _mark(engine["ready"]),
                )
                if engine
                else ("-", "-", "-")
            )
            table.add_row(*lead, *cells)
    screen.print(table)
    parts = Table(Column("component", overflow="fold"), "pid", "healthy", title="components")
    for component in result["components"]:
        parts.add_row(component["name"], str(component["pid"] or "-"), _mark(component["healthy"]))
    screen.print(parts)
    # below the table and whole: they say what to do
    for component in result["components"]:
        if component["problem"]:
            screen.print(f"[red]{component['name']}:[/] {escape(component['problem'])}", soft_wrap=True)
    if result.get("problem"):
        screen.print(f"[red]problem:[/] {escape(result['problem'])}", soft_wrap=True)
    _show_work(result)
    if outputs := result.get("outputs"):
        screen.print("stack outputs (as data: `srvmod local up --json`, `pulumi stack output --json`)")
        named = sorted(_flat(outputs))
        indent = max(len(name) for name, _ in named)
        for name, value in named:
            # whole lines, so that what is copied from them is whole
            screen.print(f"  {name:<{indent}}  {escape(value)}", soft_wrap=True)
    if completion := result.get("completion"):
        screen.print(
            f"first token after {completion['ttftMs']:.0f} ms, then {completion['meanItlMs']:.1f} ms per token "
            f"({completion['tokens']} tokens, engine: {result['engineKind']}): {completion['text'][:80]}…"
        )
    # said where it is looked for: engines follow no load here
    screen.print("scaler      simulated: holds its minimum (engine.minEngines), asks for no metric")
    screen.print(
        f"endpoint    {result['endpoint']}\nkubeconfig  {result['kubeconfig']}\nAPI key     {result['apiKeyFile']}"
    )
    if not any(engine["ready"] for node in result["nodes"] for engine in node["engines"]):
        return
    request = {"model": "llama-3-70b-instruct", "stream": True, "max_tokens": 24,
               "messages": [{"role": "user", "content": "hello"}]}  # fmt: skip
    words = [
        f"try         curl -N {result['endpoint']}/v1/chat/completions",
        f'-H "authorization: Bearer $(cat {result["apiKeyFile"]})"',
        f"-H 'content-type: application/json' -d '{json.dumps(request)}'",
    ]
    screen.print(" ".join(words), soft_wrap=True)


def _show_work(result: dict[str, Any]) -> None:
    if work := result["atWork"]:
        console().print(f"at work     `srvmod local {work['command']}` (process {work['pid']})", soft_wrap=True)


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Every leaf of the outputs with its path, as `pulumi stack output` would be asked for it."""
    if isinstance(value, dict) and value:
        for key, inner in cast("dict[str, object]", value).items():
            yield from _flat(inner, f"{name}.{key}" if name else key)
    else:
        yield name, value if isinstance(value, str) else json.dumps(value)


def _mark(value: bool) -> str:
    return "[green]yes[/]" if value else "[red]no[/]"
