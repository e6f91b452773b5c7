"""Makes the table of a vLLM version: options from its own parser, metric names from its source.

    python extract.py --out DIR [--source DIR] [--version X]

Run it with the Python of an environment that can import vLLM's dependencies (any build of vLLM, also one for CPU).
`--source` is a folder with an unpacked wheel of the version to read (`unzip vllm-X-*.whl '*.py' -d DIR`); without it
the installed vLLM is read. Only this script imports vLLM; the tables need nothing.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PARSERS = (
    "vllm.entrypoints.common.cli_args",  # 0.33
    "vllm.entrypoints.launchers.cli_args",  # 0.32
    "vllm.entrypoints.openai.cli_args",
)
"""Where vLLM keeps `make_arg_parser`, newest first."""
TYPES = {
    "int": "int",
    "float": "float",
    "human_readable_int": "size",
    "human_readable_int_or_auto": "size-or-auto",
    "loads": "json",
    "parse_dataclass": "json",
    "union_dict_and_str": "json-or-text",
}
METRIC = re.compile(r"vllm:[a-z][a-z0-9_]*")


def options(parser: argparse.ArgumentParser) -> Iterator[dict[str, Any]]:
    """Every option of a parser, hidden flags included."""
    known: dict[str, argparse.Action] = parser._option_string_actions  # pyright: ignore[reportPrivateUsage] - argparse has no public list
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        if isinstance(action, argparse._HelpAction) or not action.option_strings:  # pyright: ignore[reportPrivateUsage]
            continue
        flags = [flag for flag, owner in known.items() if owner is action]
        kind = _kind(action)
        name, optional = _type(action.type)
        yield {
            "dest": action.dest,
            "flags": flags,
            **({"negative": sorted(_negative(action, flags))} if kind == "switch" else {}),
            "kind": kind,
            **({"type": name} if kind in {"value", "append"} else {}),
            **({"optional": True} if optional else {}),
            **({"nargs": action.nargs} if isinstance(action.nargs, str) else {}),
            **({"choices": [str(choice) for choice in action.choices]} if action.choices else {}),
            **({"default": _plain(action.default)} if _plain(action.default) is not None else {}),
        }


def _kind(action: argparse.Action) -> str:
    name = type(action).__name__
    if isinstance(action, argparse.BooleanOptionalAction):
        return "switch"
    if isinstance(action, argparse._StoreTrueAction):  # pyright: ignore[reportPrivateUsage]
        return "true"
    return "append" if "Append" in name else "value"


def _negative(action: argparse.Action, flags: list[str]) -> set[str]:
    own: set[str] | None = getattr(action, "negative_option_strings", None)
    return own & set(flags) if own is not None else {flag for flag in flags if flag.startswith("--no-")}


def _type(function: Any) -> tuple[str, bool]:
    """(our name, whether the word None is taken as no value); wrapped types are looked into."""
    optional = False
    for _ in range(5):
        name = getattr(function, "__name__", "")
        if name in TYPES:
            return TYPES[name], optional
        optional = optional or "optional" in name
        inner = [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
        wrapped = [value for value in inner if callable(value)]
        if not wrapped:
            return "text", optional
        function = wrapped[0]
    return "text", optional


def _plain(value: Any) -> Any:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return None
    return value


def metrics(root: Path) -> dict[str, str]:
    """Metric name → kind, from the calls that make them anywhere in the package."""
    found: dict[str, str] = {}
    for file in sorted(root.rglob("*.py")):
        text = file.read_text(encoding="utf-8", errors="replace")
        if "vllm:" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            # Some makers take names from tables: such a metric's kind isn't known, its name is.
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and METRIC.fullmatch(node.value):
                found.setdefault(node.value, "any")
            if not isinstance(node, ast.Call):
                continue
            maker = ast.unparse(node.func).lower()
            kind = next((k for k in ("counter", "gauge", "histogram", "summary") if k in maker), "")
            for value in [*node.args, *(word.value for word in node.keywords)]:
                if isinstance(value, ast.Constant) and isinstance(value.value, str) and METRIC.fullmatch(value.value):
                    found[value.value] = kind or found.get(value.value) or "any"
    return dict(sorted(found.items()))


def main() -> None:
    """Write one table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, required=True)
    arguments.add_argument("--source", type=Path)
    arguments.add_argument("--version")
    given = arguments.parse_args()
    if given.source:
        sys.path.insert(0, str(given.source))
    os.environ.setdefault("VLLM_TARGET_DEVICE", "cpu")
    version = given.version or importlib.metadata.version("vllm")
    _pretend_installed(version)
    parser_module = next(name for name in PARSERS if _exists(name))
    make_parser = importlib.import_module(parser_module).make_arg_parser
    flexible = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser
    parser = make_parser(flexible(prog="vllm serve"))
    spec = importlib.util.find_spec("vllm")
    root = Path((spec.submodule_search_locations or [""])[0]) if spec else Path()
    table = {
        "engine": "vllm",
        "version": version,
        "source": f"vLLM {version} (Apache-2.0): options from {parser_module}.make_arg_parser, metric names from its "
        "source; made by policies/engine_versions/extract.py",
        "options": list(options(parser)),
        "metrics": [{"name": name, "kind": kind} for name, kind in metrics(root).items()],
    }
    write(table, given.out / f"vllm-{version}.json")


def write(table: dict[str, Any], path: Path) -> None:
    """One option and one metric per line, so that a version's change can be read."""
    head = {key: value for key, value in table.items() if not isinstance(value, list)}
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key in ("options", "metrics"):
        rows = ",\n".join(json.dumps(row) for row in table[key])
        lines.append(f"{json.dumps(key)}: [\n{rows}\n]")
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{path}: {len(table['options'])} options, {len(table['metrics'])} metrics")


def _exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _pretend_installed(version: str) -> None:
    """vLLM asks for its own version; an unpacked wheel or a build of another name has none under `vllm`."""
    real = importlib.metadata.version

    def answer(name: str) -> str:
        return f"{version}+cpu" if name == "vllm" else real(name)

    importlib.metadata.version = answer


if __name__ == "__main__":
    main()
