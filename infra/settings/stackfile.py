"""Reads `Pulumi.<stack>.yaml` without Pulumi: values, and the line of each."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml

from srvmod.infra.settings.loading import load
from srvmod.infra.settings.names import PRODUCT, SECRET_KEYS
from srvmod.infra.settings.places import Lines, Places, SettingPath
from srvmod.infra.settings.problems import Problem, SettingsError
from srvmod.infra.settings.settings import Settings

LARGEST_FILE = 1_000_000


class _Loader(yaml.SafeLoader):
    """Reads scalars as Pulumi does (YAML 1.2 core): no `yes`, no dates, no sexagesimal numbers."""


_Loader.yaml_implicit_resolvers = {}

for _tag, _pattern, _first in (
    ("bool", r"^(true|True|TRUE|false|False|FALSE)$", "tTfF"),
    ("int", r"^[-+]?[0-9]{1,18}$", "-+0123456789"),
    (
        "float",
        r"^([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$",
        "-+.0123456789",
    ),
    ("null", r"^(~|null|Null|NULL|)$", "~nN\0"),
    ("merge", r"^<<$", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))
_Loader.yaml_implicit_resolvers[""] = _Loader.yaml_implicit_resolvers.pop("\0")


def load_stack_file(path: Path) -> Settings:
    """Settings of the stack whose file is `path` (`Pulumi.<stack>.yaml`).

    Encrypted values are never decrypted. Raises SettingsError for whatever is wrong with the file, also when it
    can't be read.
    """
    stack = stack_name(path)
    raw, lines, problems = read_config(path, stack)
    try:
        settings = load(raw, stack=stack, source=path, lines=lines)
    except SettingsError as error:
        raise SettingsError([*problems, *error.problems], stack) from None
    if problems:
        raise SettingsError(problems, stack)
    return settings


def stack_name(path: Path) -> str:
    """The stack of a file's name; the name without its ending when it isn't a stack's file."""
    match = re.fullmatch(r"Pulumi\.(.+)\.ya?ml", path.name)
    return match.group(1) if match else path.stem


def read_config(path: Path, stack: str) -> tuple[dict[str, object], Lines, list[Problem]]:
    """The project's own config of a file, the line of each setting, and problems of the file's form.

    Raises SettingsError when there is no config to go on with.
    """
    places = Places(stack, path, {})
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise SettingsError([_unreadable(places, "is larger than any stack's file")], stack)
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SettingsError([_unreadable(places, f"can't be read: {error.strerror}")], stack) from None
    except UnicodeDecodeError:
        raise SettingsError([_unreadable(places, "isn't UTF-8 text")], stack) from None
    try:
        document, lines, twice = _parse(text)
    except yaml.YAMLError as error:
        raise SettingsError([_unreadable(places, _yaml_problem(error))], stack) from None
    except (RecursionError, ValueError):
        raise SettingsError(
            [_unreadable(places, "can't be read as YAML: nested too deep or malformed")], stack
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("config"), dict):
        raise SettingsError([_unreadable(places, "has no mapping 'config'")], stack)
    places = Places(stack, path, _own(lines))
    config = cast("dict[object, object]", document["config"])
    problems = [
        places.problem(_without_prefix(key), None, "is given twice", "each key once")
        for key in twice
        if key[:1] == ("config",) and len(key) > 1
    ]
    return (*_own_config(config, places, problems), problems)


def read_lines(path: Path) -> Lines:
    """Line of each setting of a stack's file; empty when the file can't be read."""
    try:
        _, lines, _ = _parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return {}
    return _own(lines)


def _own_config(
    config: dict[object, object], places: Places, problems: list[Problem]
) -> tuple[dict[str, object], Lines]:
    """The keys in the project's namespace, without it. A key without a namespace is the project's, too."""
    own: dict[str, object] = {}
    for key, value in config.items():
        namespace, colon, name = str(key).partition(":")
        if not colon:
            namespace, name = PRODUCT, str(key)
        if namespace != PRODUCT:
            continue
        if name in SECRET_KEYS:
            if not (isinstance(value, dict) and set(cast("dict[object, object]", value)) == {"secure"}):
                problems.append(
                    places.problem(
                        (name,),
                        {"secure": ""} if value is None else "",
                        "is a secret in the clear",
                        f"an encrypted value: pulumi config set --secret {name}; then replace the leaked one",
                    )
                )
        else:
            own[name] = value
    return own, places.lines


def _parse(text: str) -> tuple[Any, dict[SettingPath, int], list[SettingPath]]:
    """The document, the line of each key and item, and keys given twice in one mapping."""
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        lines: dict[SettingPath, int] = {}
        twice: list[SettingPath] = []
        if node is not None:
            for path, line in _walk(node, (), set()):
                if path in lines:
                    twice.append(path)
                lines[path] = line
        return (loader.construct_document(node) if node is not None else None), lines, twice
    finally:
        loader.dispose()


def _walk(node: yaml.Node, path: SettingPath, seen: set[int]) -> Iterator[tuple[SettingPath, int]]:
    """Paths of a document with their lines. A node that aliases repeat is walked once, so this ends."""
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != "tag:yaml.org,2002:merge":
                inner = (*path, key.value)
                yield inner, key.start_mark.line + 1
                yield from _walk(value, inner, seen)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark.line + 1
            yield from _walk(item, (*path, index), seen)


def _own(lines: Lines) -> Lines:
    """Lines of the project's own settings, by their path without `config` and namespace."""
    return {_without_prefix(path): line for path, line in lines.items() if path[:1] == ("config",) and len(path) > 1}


def _without_prefix(path: SettingPath) -> SettingPath:
    first = str(path[1])
    return (first.removeprefix(f"{PRODUCT}:"), *path[2:])


def _unreadable(places: Places, problem: str) -> Problem:
    return Problem(
        key="config",
        value="(the whole file)",
        problem=f"the file {problem}",
        allowed=f"YAML with a mapping 'config' whose keys start with '{PRODUCT}:'",
        place=places.file,
    )


def _yaml_problem(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    line = f" in line {mark.line + 1}" if mark is not None else ""
    return f"isn't YAML{line}: {getattr(error, 'problem', None) or 'malformed'}"
