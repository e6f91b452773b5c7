"""The catalogue and the go.mod files agree, and every version is written once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from srvmod.tools import catalogue, gomod
from srvmod.tools.catalogue import TOOLS_BY_NAME, Tool
from srvmod.tools.errors import ToolError

ROOT = Path(__file__).resolve().parents[2]
PINNED = [tool for tool in TOOLS_BY_NAME.values() if tool.module is not None]


@pytest.mark.parametrize("tool", PINNED, ids=lambda tool: tool.name)
def test_pin_lies_in_the_tools_own_go_mod(tool: Tool) -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+(-\S+)?", tool.version)
    assert (tool.folder / "go.sum").is_file()
    text = (tool.folder / "go.mod").read_text()
    for program in tool.programs:
        if program.package == ".":
            assert (tool.folder / "main.go").is_file()
        else:
            assert re.search(rf"^(tool |\t){re.escape(program.package)}$", text, re.MULTILINE)


@pytest.mark.parametrize("tool", PINNED, ids=lambda tool: tool.name)
def test_version_is_written_nowhere_else(tool: Tool) -> None:
    written = (ROOT / "tools" / "catalogue.py").read_text()
    assert tool.version not in written.replace('at_least="1.1.5"', "")


def test_names_and_outputs_are_unique() -> None:
    outputs = [program.output for tool in TOOLS_BY_NAME.values() for program in tool.programs]
    assert len(outputs) == len(set(outputs))
    assert all(name == tool.name for name, tool in TOOLS_BY_NAME.items())


def test_tools_of_checks_wait_until_they_are_asked_for() -> None:
    assert set(TOOLS_BY_NAME) - set(catalogue.LOCAL_STACK) == {"actionlint", "helm", "kube-score"}


def test_every_module_folder_belongs_to_a_tool_or_pins_custom_resources() -> None:
    folders = {path.parent for path in (ROOT / "tools" / "modules").glob("*/go.mod")}
    assert folders == {*(tool.folder for tool in PINNED), ROOT / "tools/modules/custom-resources"}


@pytest.mark.parametrize(
    ("module", "folder"),
    [
        ("github.com/aws/karpenter-provider-aws", "kubernetes"),
        ("github.com/envoyproxy/gateway", "envoy-gateway"),
        ("sigs.k8s.io/karpenter", "kubernetes"),
        ("sigs.k8s.io/gateway-api", "envoy-gateway"),
        ("sigs.k8s.io/kwok", "kubernetes"),
        ("github.com/pulumi/pulumi-kubernetes/provider/v4", "pulumi-kubernetes"),
        ("k8s.io/kubernetes", "kubernetes"),
    ],
)
def test_module_is_found_where_its_tool_is_pinned(module: str, folder: str) -> None:
    assert gomod.home_of(module).name == folder
    assert gomod.version_of(gomod.home_of(module) / "go.mod", module).startswith("v")


def test_module_that_nothing_is_built_from_is_refused() -> None:
    with pytest.raises(ToolError, match=r"module a\.example/none: .*found: none"):
        gomod.home_of("a.example/none")


def test_go_mod_without_the_module_is_named(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module x\n\nrequire a.example/one/v2 v2.0.0\n")
    with pytest.raises(ToolError, match=r"go\.mod: no version of a\.example/one is required"):
        gomod.version_of(tmp_path / "go.mod", "a.example/one")
    with pytest.raises(ToolError, match="no `go` line"):
        gomod.go_version_of(tmp_path / "go.mod")
    with pytest.raises(ToolError, match="can't be read"):
        gomod.version_of(tmp_path / "nowhere" / "go.mod", "a.example/one")


def test_linker_flags_carry_the_version() -> None:
    flags = TOOLS_BY_NAME["kubelet"].linker_flags
    version = TOOLS_BY_NAME["kubelet"].version
    assert f"gitVersion=v{version}" in flags
    assert f"gitMinor={version.split('.')[1]}" in flags


def test_sources_decide_the_version_of_our_own_program(tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text("package main\n")
    before = catalogue.source_digest(tmp_path)
    (tmp_path / "main.go").write_text("package main // changed\n")
    catalogue.source_digest.cache_clear()
    assert catalogue.source_digest(tmp_path) != before
