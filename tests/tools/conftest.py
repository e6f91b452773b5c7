"""A tools folder, a PATH and a `go` of their own for every test: nothing real is built or run."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from srvmod.tools import builder, catalogue, golang, paths
from srvmod.tools.catalogue import Program, Tool

# Does what the builder needs of Go: names its version, and "compiles" a script that prints the version that the
# linker flag sets. FAKE_GO_* variables make it slow, broken or wrong; every call is written to FAKE_GO_LOG.
FAKE_GO = r"""#!/bin/sh
log() { echo "$1 $2" >> "$FAKE_GO_LOG"; }
if [ "$1 $2" = "env GOVERSION" ]; then echo "${FAKE_GO_VERSION:-go1.26.8}"; exit 0; fi
if [ "$1 $2" = "build std" ]; then log std x; exit 0; fi
for argument; do
  case "$argument" in
    -ldflags=*) version=${argument##*=} ;;
    /*) out=$argument ;;
  esac
  package=$argument
done
log start "$package"
echo half > "$out"
[ -n "$FAKE_GO_SLEEP" ] && sleep "$FAKE_GO_SLEEP"
case " $FAKE_GO_FAIL " in *" $package "*) echo "$package: no space left on device" >&2; exit 1 ;; esac
printf '#!/bin/sh\necho "tool version %s"\n' "${FAKE_GO_MADE:-$version}" > "$out"
chmod +x "$out"
log end "$package"
"""


@pytest.fixture(autouse=True)
def tools_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty tools folder."""
    folder = tmp_path / "tools"
    places = {"TOOLS": "", "BIN": "bin", "CNI_BIN": "cni/bin", "CHARTS": "charts"}
    places |= {"STAMPS": "stamps", "SCRATCH": "tmp", "LOCK": "lock"}
    for name, below in places.items():
        monkeypatch.setattr(paths, name, folder / below)
    return folder


@pytest.fixture(autouse=True)
def no_memory() -> None:
    """Forget what earlier tests found out about PATH and Go."""
    catalogue.source_digest.cache_clear()
    golang._found.cache_clear()
    builder._fits.cache_clear()


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder with programs on PATH besides the system's basic ones; has a working `go`."""
    folder = tmp_path / "machine"
    folder.mkdir()
    for name in ("sh", "sleep", "chmod", "echo", "printf"):
        (folder / name).symlink_to(Path("/bin") / name)
    script(folder / "go", FAKE_GO)
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("FAKE_GO_LOG", str(tmp_path / "go.log"))
    return folder


def script(path: Path, text: str) -> None:
    path.write_text(textwrap.dedent(text))
    path.chmod(0o755)


@pytest.fixture
def calls(tmp_path: Path) -> Callable[[], list[str]]:
    """What the fake `go` was asked to build so far: "start a.example/one", "end a.example/one", "std x"."""
    return lambda: (tmp_path / "go.log").read_text().splitlines() if (tmp_path / "go.log").exists() else []


@pytest.fixture
def make_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Tool]:
    """Puts a tool with a go.mod of its own into the catalogue."""
    monkeypatch.setattr(catalogue, "TOOLS_BY_NAME", {})

    def make(name: str, version: str = "1.2.3", go: str = "1.26.8", **more: object) -> Tool:
        home = tmp_path / "modules" / name
        home.mkdir(parents=True)
        (home / "go.mod").write_text(
            f"module x\n\ngo {go}\n\ntool a.example/{name}\n\nrequire a.example/{name} v{version}\n"
        )
        tool = Tool(
            name,
            os.fspath(home),
            f"a.example/{name}",
            (Program(f"a.example/{name}", f"bin/{name}"),),
            "a test",
            ldflags="-X main.version={version}",
        )
        tool = replace(tool, **more)  # type: ignore[arg-type]
        catalogue.TOOLS_BY_NAME[name] = tool
        return tool

    return make
