"""`srvmod local`: the whole platform on this machine."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from srvmod.local import facts
from srvmod.local.errors import LocalError
from srvmod.local.paths import default_state

app = typer.Typer(help="The whole platform on one machine, with real parts.", no_args_is_help=True)
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout; progress goes to stderr.")]


class Steps:
    """Progress lines on stderr: elapsed seconds, step, what happens."""

    def __init__(self) -> None:
        self.console, self.began, self.last = Console(stderr=True, highlight=False), time.monotonic(), ("", "")

    def __call__(self, step: str, what: str) -> None:
        if (step, what) != self.last:
            self.last = (step, what)
            self.console.print(
                f"[dim]{time.monotonic() - self.began:6.1f} s[/]  [bold]{step:<18}[/] {what}", soft_wrap=True
            )


def _fail(error: LocalError) -> typer.Exit:
    Console(stderr=True, highlight=False).print(
        f"[red]error:[/] {error.what}\n[bold]fix:[/] {error.fix}", soft_wrap=True, markup=True
    )
    return typer.Exit(1)


def _need_root() -> None:
    if os.geteuid() == 0:
        return
    why = "namespaces, mounts and cgroups of the stack's own need root"
    if sys.stdin.isatty():
        Console(stderr=True).print(f"{why}: asking for sudo once")
        os.execvp("sudo", ["sudo", "--preserve-env", sys.executable, "-m", "srvmod.ops.cli", *sys.argv[1:]])
    raise LocalError(f"not root (uid {os.geteuid()}): {why}", "run it as root, e.g. `sudo --preserve-env make local`")


@app.command()
def up(json_output: Json = False) -> None:
    """Build what is missing, start everything, run the program, stream a first completion."""
    from srvmod.local.first_completion import stream
    from srvmod.local.stack import LocalStack

    steps = Steps()
    try:
        _need_root()
        stack = LocalStack(default_state(), steps)
        stack.up()
        found = facts.load(stack.state.facts_file)
        assert found
        steps("completion", "streaming the first one")
        completion = stream(found, stack.state)
        result: dict[str, Any] = {
            **stack.status(),
            "completion": completion,
            "elapsedSeconds": round(time.monotonic() - steps.began, 1),
        }
        result["outputs"] = stack.outputs()
    except LocalError as error:
        raise _fail(error) from error
    except KeyboardInterrupt:
        Console(stderr=True).print(
            "interrupted: what runs stays; `srvmod local up` goes on, `srvmod local down` ends it"
        )
        raise typer.Exit(130) from None
    if json_output:
        print(json.dumps(result, indent=1))
    else:
        _show(result)


@app.command()
def status(json_output: Json = False) -> None:
    """What runs now, asked from the parts themselves. Exit 0: all healthy, 1: something isn't, 3: no stack."""
    from srvmod.local.stack import LocalStack

    result = LocalStack(default_state(), lambda *_: None).status()
    if json_output:
        print(json.dumps(result, indent=1))
    elif result["running"]:
        _show(result)
    else:
        Console().print(result["problem"])
    sick = [c for c in result["components"] if not c["healthy"]]
    raise typer.Exit(3 if not result["running"] else 1 if sick or result["problem"] else 0)


@app.command()
def down(json_output: Json = False) -> None:
    """End everything and remove what the stack made; caches and the last logs stay in the state folder."""
    from srvmod.local.stack import LocalStack

    steps = Steps()
    try:
        _need_root()
        was = LocalStack(default_state(), steps).down()
    except LocalError as error:
        raise _fail(error) from error
    if json_output:
        print(json.dumps({"ended": was}))
    else:
        Console().print("ended" if was else "there was no stack; nothing to end")


@app.command()
def env() -> None:
    """Shell lines that lead the plain `pulumi` and `kubectl` to the local stack: eval "$(srvmod local env)"."""
    from srvmod.local.pulumi_cli import environment
    from srvmod.tools import BIN

    state = default_state()
    found = facts.load(state.facts_file)
    if found is None:
        raise _fail(LocalError("no local stack", "run `srvmod local up` first"))
    for name, value in environment(state, found, BIN).items():
        print(f"export {name}={shlex.quote(value)}")


def _show(result: dict[str, Any]) -> None:
    console = Console(highlight=False)
    table = Table(
        "node",
        "instance",
        "ready",
        "weights",
        "engine",
        "island",
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
    console.print(table)
    parts = Table("component", "pid", "healthy", "problem", title="components")
    for component in result["components"]:
        parts.add_row(
            component["name"], str(component["pid"] or "-"), _mark(component["healthy"]), component["problem"]
        )
    console.print(parts)
    if result.get("problem"):
        console.print(f"[red]problem:[/] {result['problem']}")
    if outputs := result.get("outputs"):
        shown = Table("output", "value", title="stack outputs")
        for name, value in sorted(outputs.items()):
            shown.add_row(name, value if isinstance(value, str) else json.dumps(value))
        console.print(shown)
    if completion := result.get("completion"):
        console.print(
            f"first token after {completion['ttftMs']:.0f} ms, then {completion['meanItlMs']:.1f} ms per token "
            f"({completion['tokens']} tokens, engine: {result['engineKind']}): {completion['text'][:80]}…"
        )
    console.print(
        f"endpoint    {result['endpoint']}\nkubeconfig  {result['kubeconfig']}\nAPI key     {result['apiKeyFile']}"
    )
    request = {"model": "llama-3-70b-instruct", "stream": True, "max_tokens": 24,
               "messages": [{"role": "user", "content": "hello"}]}  # fmt: skip
    words = [
        f"try         curl -N {result['endpoint']}/v1/chat/completions",
        f'-H "authorization: Bearer $(cat {result["apiKeyFile"]})"',
        f"-H 'content-type: application/json' -d '{json.dumps(request)}'",
    ]
    console.print(" ".join(words), soft_wrap=True)


def _mark(value: bool) -> str:
    return "[green]yes[/]" if value else "[red]no[/]"
