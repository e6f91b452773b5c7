"""Finding and building with a fake `go`: what is built, when again, and what every fault says."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from srvmod.tools import builder, catalogue, paths, stamps
from srvmod.tools.catalogue import Program, Tool
from srvmod.tools.errors import ToolError

from .conftest import script

Make = Callable[..., Tool]
Calls = Callable[[], list[str]]


def starts(calls: Calls) -> list[str]:
    return [line.removeprefix("start ") for line in calls() if line.startswith("start")]


def test_missing_tool_is_built_verified_and_kept(machine: Path, make_tool: Make, calls: Calls) -> None:
    make_tool("one")
    lines: list[str] = []
    assert builder.find("one") is None
    assert builder.ensure(["one"], lines.append) == {"one": paths.BIN / "one"}
    assert lines[0] == "one 1.2.3: building"
    assert lines[-1].startswith("one 1.2.3: built and verified in ")
    assert builder.ensure(["one", "one"]) == {"one": paths.BIN / "one"}
    assert builder.find("one") == paths.BIN / "one"
    assert starts(calls) == ["a.example/one"]


def test_scratch_is_empty_afterwards(machine: Path, make_tool: Make) -> None:
    make_tool("one")
    builder.ensure(["one"])
    assert list(paths.SCRATCH.glob("run-*")) == []


def test_changed_pin_builds_again(machine: Path, make_tool: Make, calls: Calls) -> None:
    tool = make_tool("one")
    builder.ensure(["one"])
    go_mod = tool.folder / "go.mod"
    go_mod.write_text(go_mod.read_text().replace("v1.2.3", "v1.2.4"))
    catalogue.source_digest.cache_clear()
    assert builder.find("one") is None
    builder.ensure(["one"])
    assert "1.2.4" in (paths.BIN / "one").read_text()
    assert len(starts(calls)) == 2


def test_changed_checksums_build_again(machine: Path, make_tool: Make) -> None:
    tool = make_tool("one")
    builder.ensure(["one"])
    (tool.folder / "go.sum").write_text("other\n")
    catalogue.source_digest.cache_clear()
    assert builder.find("one") is None


def test_damaged_binary_is_built_again(machine: Path, make_tool: Make, calls: Calls) -> None:
    make_tool("one")
    builder.ensure(["one"])
    (paths.BIN / "one").write_text("half")
    assert builder.find("one") is None
    builder.ensure(["one"])
    assert "1.2.3" in (paths.BIN / "one").read_text()


@pytest.mark.parametrize("stamp", ["", "{", "[]", '{"digest": 1}'])
def test_unreadable_stamp_counts_as_none(machine: Path, make_tool: Make, stamp: str) -> None:
    tool = make_tool("one")
    builder.ensure(["one"])
    (paths.STAMPS / "one.json").write_text(stamp)
    assert stamps.read(tool) is None


def test_binary_without_stamp_in_own_bin_is_not_trusted(
    machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tool("one")
    paths.BIN.mkdir(parents=True)
    script(paths.BIN / "one", "#!/bin/sh\necho 1.2.3\n")
    monkeypatch.setenv("PATH", f"{paths.BIN}:{machine}")
    assert builder.find("one") is None


@pytest.mark.parametrize(
    ("said", "at_least", "taken"),
    [
        ("v1.2.3", None, True),
        ("one version 1.2.3+vendor.1", None, True),
        ("v1.2.4", None, False),
        ("v1.2.3-rc.1", None, False),
        ("v1.2", None, False),
        ("", None, False),
        ("v1.1.5", "1.1.5", True),
        ("v1.10.0", "1.9.0", True),
        ("v1.1.4", "1.1.5", False),
    ],
)
def test_path_is_used_only_at_the_pinned_version(
    machine: Path, make_tool: Make, said: str, at_least: str | None, taken: bool
) -> None:
    make_tool("one", at_least=at_least)
    script(machine / "one", f"#!/bin/sh\necho '{said}'\n")
    assert (builder.find("one") == machine / "one") is taken


@pytest.mark.parametrize("text", ["#!/bin/sh\nexit 1\n", "#!/no/such/shell\n", "garbage"])
def test_broken_program_on_path_is_passed_over(machine: Path, make_tool: Make, text: str, calls: Calls) -> None:
    make_tool("one")
    script(machine / "one", text)
    assert builder.ensure(["one"]) == {"one": paths.BIN / "one"}


def test_path_needs_no_go(machine: Path, make_tool: Make) -> None:
    make_tool("one")
    script(machine / "one", "#!/bin/sh\necho 1.2.3\n")
    (machine / "go").unlink()
    assert builder.ensure(["one"]) == {"one": machine / "one"}


def test_missing_go_is_named_with_the_tool_that_needs_it(machine: Path, make_tool: Make) -> None:
    make_tool("one")
    (machine / "go").unlink()
    with pytest.raises(ToolError, match=r"one 1\.2\.3.*needs Go 1\.26\.8 or newer; no `go`") as caught:
        builder.ensure(["one"])
    assert "install Go 1.26.8" in caught.value.fix


@pytest.mark.parametrize("have", ["go1.26.7", "go1.9", "go1.25.99"])
def test_old_go_is_named_with_its_version(
    machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch, have: str
) -> None:
    make_tool("old", go="1.20")
    make_tool("one")
    monkeypatch.setenv("FAKE_GO_VERSION", have)
    with pytest.raises(ToolError, match=rf"one 1\.2\.3.*1\.26\.8 or newer; .*go is {re.escape(have[2:])}\n"):
        builder.ensure(["old", "one"])


@pytest.mark.parametrize("have", ["go1.26.8", "go1.27rc1", "go1.100", "go2.0", "devel go1.27.0-abcdef X:loopvar"])
def test_new_go_is_good(machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch, have: str) -> None:
    make_tool("one")
    monkeypatch.setenv("FAKE_GO_VERSION", have)
    assert builder.ensure(["one"])


def test_missing_c_compiler_is_known_before_anything_is_built(machine: Path, make_tool: Make, calls: Calls) -> None:
    make_tool("one")
    make_tool("cee", cgo=True, at_least="1.1.5")
    with pytest.raises(ToolError, match=r"cee 1\.1\.5: .*needs a C compiler; gcc") as caught:
        builder.ensure(["one", "cee"])
    assert "apt install cee" in caught.value.fix
    assert starts(calls) == []


def test_full_disk_is_known_before_anything_is_built(
    machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    make_tool("one")
    monkeypatch.setattr(builder, "BYTES_PER_TOOL", 10**18)
    with pytest.raises(ToolError, match=r"GB free, about 1000000000\.0 GB needed for 1 tools"):
        builder.ensure(["one"])
    assert starts(calls) == []


def test_one_failure_lets_the_others_be_built(machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("one", "two", "three"):
        make_tool(name)
    monkeypatch.setenv("FAKE_GO_FAIL", "a.example/two")
    lines: list[str] = []
    with pytest.raises(ToolError, match=r"two 1\.2\.3: `go build .*a\.example/two` in .* ended with 1") as caught:
        builder.ensure(["one", "two", "three"], lines.append)
    assert "a.example/two: no space left on device" in caught.value.problem
    assert "about 15 GB" in caught.value.fix
    assert "one 1.2.3" not in caught.value.problem
    assert any(line.startswith("two 1.2.3: failed after") for line in lines)
    assert sorted(path.name for path in paths.BIN.iterdir()) == ["one", "three"]
    monkeypatch.delenv("FAKE_GO_FAIL")
    assert set(builder.ensure(["one", "two", "three"])) == {"one", "two", "three"}


def test_binary_that_says_another_version_is_not_installed(
    machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tool("one")
    monkeypatch.setenv("FAKE_GO_MADE", "9.9.9")
    with pytest.raises(ToolError, match=r"one: expected version 1\.2\.3 \(pinned in .*go\.mod\); found 9\.9\.9"):
        builder.ensure(["one"])
    assert not paths.BIN.exists()


def test_tool_of_several_programs_is_a_folder_and_all_or_nothing(
    machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tool("cni", programs=(Program("a.example/x", "cni/bin/x"), Program("a.example/y", "cni/bin/y")), on_path=False)
    monkeypatch.setenv("FAKE_GO_FAIL", "a.example/y")
    with pytest.raises(ToolError):
        builder.ensure(["cni"])
    assert not paths.CNI_BIN.exists()
    monkeypatch.delenv("FAKE_GO_FAIL")
    assert builder.ensure(["cni"]) == {"cni": paths.CNI_BIN}
    assert sorted(path.name for path in paths.CNI_BIN.iterdir()) == ["x", "y"]


def test_tool_that_is_never_on_path_is_not_looked_for_there(machine: Path, make_tool: Make) -> None:
    make_tool("one", on_path=False)
    script(machine / "one", "#!/bin/sh\necho 1.2.3\n")
    assert builder.find("one") is None


def test_two_at_most_and_one_per_lane(
    machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    for name, lane in {"a": "x", "b": "x", "c": "y", "d": "z", "e": "z"}.items():
        make_tool(name, lane=lane)
    monkeypatch.setenv("FAKE_GO_SLEEP", "0.1")
    builder.ensure("abcde")
    lines = calls()
    assert lines[0] == "std x"
    running: set[str] = set()
    for line in lines[1:]:
        event, package = line.split()
        (running.add if event == "start" else running.discard)(package[-1])
        assert len(running) <= 2
        assert not running >= {"a", "b"}
        assert not running >= {"d", "e"}


def test_two_runs_build_once(machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch, calls: Calls) -> None:
    make_tool("one")
    monkeypatch.setenv("FAKE_GO_SLEEP", "0.3")
    monkeypatch.setattr("srvmod.tools.locking.POLL_S", 0.02)
    said: list[str] = []
    found: list[dict[str, Path]] = []
    threads = [threading.Thread(target=lambda: found.append(builder.ensure(["one"], said.append))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"one": paths.BIN / "one"}] * 2
    assert starts(calls) == ["a.example/one"]
    assert sum(line.startswith("waiting for another run that builds tools (process ") for line in said) == 1


def test_long_build_says_so(machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tool("one")
    monkeypatch.setenv("FAKE_GO_SLEEP", "0.3")
    monkeypatch.setattr(builder, "SILENCE_S", 0.1)
    lines: list[str] = []
    builder.ensure(["one"], lines.append)
    assert "one 1.2.3: building, 0 s" in lines


def test_progress_that_raises_ends_the_compiler(
    machine: Path, make_tool: Make, monkeypatch: pytest.MonkeyPatch, calls: Calls
) -> None:
    make_tool("one")
    monkeypatch.setenv("FAKE_GO_SLEEP", "30")
    monkeypatch.setattr(builder, "SILENCE_S", 0.2)

    def fail(line: str) -> None:
        if line.endswith(" s"):
            raise RuntimeError(line)

    with pytest.raises(RuntimeError):
        builder.ensure(["one"], fail)
    assert not any(line.startswith("end") for line in calls())
    assert list(paths.SCRATCH.glob("run-*")) == []


def test_unknown_name_is_answered_with_the_nearest(make_tool: Make) -> None:
    make_tool("kubelet")
    with pytest.raises(ToolError, match="no tool is called 'kublet'") as caught:
        builder.ensure(["kublet"])
    assert caught.value.fix == "did you mean kubelet? allowed: kubelet"


def test_leftovers_of_a_killed_run_are_removed(machine: Path, make_tool: Make) -> None:
    make_tool("one")
    (paths.SCRATCH / "run-old" / "one").mkdir(parents=True)
    builder.ensure(["one"])
    assert list(paths.SCRATCH.glob("run-*")) == []


def test_folder_that_cannot_be_made(machine: Path, make_tool: Make, tools_folder: Path) -> None:
    make_tool("one")
    tools_folder.write_text("a file is in the way")
    with pytest.raises(ToolError, match="can't be made") as caught:
        builder.ensure(["one"])
    assert "SRVMOD_TOOLS" in caught.value.fix
