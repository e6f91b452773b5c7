"""Who may import whom: the house's rule, read from the code's own imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).parents[2]

MAY_IMPORT: dict[str, set[str]] = {
    "contract": {"contract"},
    "capacity": {"capacity", "contract"},
    "infra": {"infra", "contract", "capacity"},
    "policies": {"policies", "contract", "capacity"},
    "ops": {"ops", "contract", "capacity"},
    "local": {"local", "contract", "capacity", "infra", "tools"},
    "tools": {"tools"},
}
"""Room → rooms of this project that it may import."""

NEVER_OUTSIDE: dict[str, set[str]] = {
    "contract": {"pulumi", "pulumi_aws", "pulumi_eks", "pulumi_kubernetes", "boto3", "botocore", "kubernetes"},
    "capacity": {"pulumi", "pulumi_aws", "pulumi_eks", "pulumi_kubernetes", "boto3", "botocore", "kubernetes"},
    "policies": {"boto3", "botocore", "kubernetes"},
    "tools": {"pulumi", "boto3", "botocore", "kubernetes", "pydantic"},
}
"""Room → distributions that it never imports."""


def imports(file: Path) -> Iterator[str]:
    """Dotted names that a file imports, at any depth of its code."""
    for node in ast.walk(ast.parse(file.read_text(), str(file))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module
            if node.module == "srvmod":
                yield from (f"srvmod.{alias.name}" for alias in node.names)


def files(room: str) -> list[Path]:
    return sorted(p for p in (REPO / room).rglob("*.py") if "__pycache__" not in p.parts)


def broken(room: str, names: Iterator[str]) -> list[str]:
    """Names among `names` that `room` must not import."""
    found = []
    for name in names:
        parts = name.split(".")
        neighbour = parts[1] if parts[0] == "srvmod" and len(parts) > 1 else room
        forbidden = neighbour in MAY_IMPORT and neighbour not in {room, *MAY_IMPORT[room]}
        if forbidden or parts[0] in NEVER_OUTSIDE.get(room, set()):
            found.append(name)
    return found


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_only_what_the_house_allows(room: str) -> None:
    wrong = [f"{file.relative_to(REPO)}: {name}" for file in files(room) for name in broken(room, imports(file))]
    assert not wrong, "\n".join(wrong)


def test_the_rule_sees_a_forbidden_import(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text("import boto3\nfrom srvmod.local import stack\nfrom srvmod import infra\n")
    assert broken("contract", imports(file)) == ["boto3", "srvmod.local", "srvmod.infra"]


def test_every_room_is_importable_under_the_products_name() -> None:
    links = {p.name for p in (REPO / "src/srvmod").iterdir() if p.is_symlink()}
    assert links == set(MAY_IMPORT)
    assert all((REPO / "src/srvmod" / name).resolve() == REPO / name for name in links)
