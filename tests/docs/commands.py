"""What a command line in prose or in a workflow says: whether what it calls exists."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import typer

from srvmod.ops.cli import ROOMS, add

ROOT = Path(__file__).parents[2]
SEPARATORS = {"&&", "||", "|", ";"}
OTHERS = frozenset({
    "aws", "awk", "cat", "cd", "code=0", "crane", "curl", "diff", "docker", "echo", "eval", "exit", "export", "git",
    "grep", "head", "helm", "hf", "if", "jq", "kill", "kubectl", "ls", "mv", "openssl", "pip", "pulumi", "python",
    "python3", "python3.11", "rm", "sed", "sha256sum", "sleep", "ssh", "sudo", "tail", "tar", "tee", "test", "true",
    "watch",
})  # fmt: skip
"""Commands of other people that prose and workflows may use."""
PULUMI = {
    "cancel": set(),
    "config": {"--secret", "--path", "--stack"},
    "destroy": {"--stack", "--target", "--target-dependents", "--yes", "--skip-preview", "--run-program",
                "--preview-only"},
    "login": set(),
    "logs": set(),
    "preview": {"--stack", "--diff", "--json", "--save-plan", "--refresh", "--expect-no-changes", "--non-interactive",
                "--policy-pack", "--target"},
    "refresh": {"--stack", "--preview-only", "--expect-no-changes", "--yes"},
    "stack": {"--json", "--stack", "--secrets-provider", "--show-secrets", "--file", "--non-interactive"},
    "state": {"--stack", "--yes", "--all"},
    "up": {"--stack", "--plan", "--policy-pack", "--yes", "--skip-preview", "--non-interactive", "--refresh",
           "--target"},
}  # fmt: skip
"""Subcommands of pulumi and those of their options that are used here; an acceptance test asks the binary."""


def simple_commands(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell text: words, without redirections, comments and prompts."""
    for line in re.sub(r"\\\n\s*", " ", text).splitlines():
        # `$(…)` and `$((…))` are opaque words here; what is inside is somebody else's command
        flat = re.sub(r"\$\([^()]*\)", "SUBSTITUTED", line)
        try:
            words = shlex.split(flat, comments=True)
        except ValueError:
            continue
        current: list[str] = []
        for word in [*words, ";"]:
            ends = word in SEPARATORS or word.endswith(";")
            if ends:
                if word not in SEPARATORS:
                    current.append(word.rstrip(";"))
                if current:
                    yield _plain(current)
                current = []
            else:
                current.append(word)


def _plain(words: list[str]) -> list[str]:
    """Without variables in front and without what only shapes the shell's flow."""
    while words and (
        re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*=.*", words[0]) or words[0] in {"if", "then", "do", "!", "["}
    ):
        words = words[1:]
    return words


def problem(words: list[str]) -> str | None:  # noqa: PLR0911 - one line per kind of command
    """What is wrong with a simple command as far as this repository can say; None when nothing is."""
    if not words or words[0] in {"fi", "done", "for", "while", "]", "{", "}"} or words[0].startswith(("$", "SUBST")):
        return None
    name, rest = Path(words[0]).name, words[1:]
    if name == "srvmod":
        return _srvmod(rest)
    if name == "make":
        unknown = [word for word in rest if "=" not in word and not word.startswith("-") and word not in targets()]
        return f"make has no target {unknown[0]}" if unknown else None
    if name == "pulumi":
        return _pulumi(rest)
    if name == "python" and rest[:2] == ["-m", "pytest"]:
        missing = [word for word in rest[2:] if word.startswith("tests/") and not (ROOT / word).exists()]
        return f"{missing[0]} doesn't exist" if missing else None
    if words[0].startswith(("./", "examples/", "images/", ".ci/", "local/", "tools/")):
        return None if (ROOT / words[0]).exists() else f"{words[0]} doesn't exist"
    return None if name in OTHERS else f"{name} is no command of this repository or of tests/docs/commands.py"


@cache
def targets() -> frozenset[str]:
    """Targets of the Makefile."""
    return frozenset(re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))


def _srvmod(words: list[str]) -> str | None:
    if not words or words[0].startswith("-"):
        return None
    if words[0] not in ROOMS:
        return f"srvmod has no command {words[0]}"
    command, path = _room(words[0]), [words[0]]
    rest = words[1:]
    while (inside := getattr(command, "commands", None)) and rest and not rest[0].startswith("-"):
        inner = inside.get(rest[0])
        if inner is None:
            return f"srvmod {' '.join(path)} has no command {rest[0]}"
        path.append(rest[0])
        command, rest = inner, rest[1:]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    unknown = [
        word for word in rest if word.startswith("-") and word != "-" and word.split("=")[0] not in {*known, "--help"}
    ]
    return f"srvmod {' '.join(path)} has no option {unknown[0]}" if unknown else None


@cache
def _room(name: str) -> Any:
    """The command of a room as `srvmod` itself builds it."""
    app = typer.Typer()
    app.callback()(lambda: None)  # with one, a single command keeps its name
    add(app, name)
    return typer.main.get_command(app).commands[name]


def _pulumi(words: list[str]) -> str | None:
    if not words or words[0] not in PULUMI:
        return f"pulumi {words[0] if words else ''} isn't among the commands of tests/docs/commands.py"
    unknown = [w for w in words if w.startswith("-") and w.split("=")[0] not in PULUMI[words[0]]]
    return f"pulumi {words[0]} has no option {unknown[0]} (as far as tests/docs/commands.py knows)" if unknown else None
