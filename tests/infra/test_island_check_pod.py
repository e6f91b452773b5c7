"""The island check in the engine's pod: first in its command, as the file that the ConfigMap carries."""

from dataclasses import replace
from pathlib import Path

import pytest

from srvmod.infra.serving import island_check
from srvmod.infra.serving.documents import engine, island
from tests.infra.test_documents import ENGINE


def _split(command: list[str]) -> tuple[list[str], list[str]]:
    """The island check's words and the program's."""
    end = command.index("--")
    return command[:end], command[end + 1 :]


def test_the_island_check_comes_before_the_program() -> None:
    container = engine.pod(ENGINE)["containers"][0]
    mount = next(mount for mount in container["volumeMounts"] if mount["name"] == "island-check")
    (name, source), *more = island.config_map("serving")["data"].items()
    words, _ = _split(container["command"])
    assert not more
    assert words == [
        *("/usr/bin/env", "python3", "-I", f"{mount['mountPath']}/{name}"),
        *("--gpus=4", "--model=H100", "--nvlinks=18"),
    ]
    assert source == Path(island_check.__file__).read_text(encoding="utf-8")
    assert container["args"][0] == "serve"


def test_the_engine_gets_nvidia_smi() -> None:
    environment = {entry["name"]: entry["value"] for entry in engine.pod(ENGINE)["containers"][0]["env"]}
    assert "utility" in environment["NVIDIA_DRIVER_CAPABILITIES"].split(",")


def test_only_simulated_stacks_let_engines_start_on_pretended_nodes() -> None:
    command = engine.pod(replace(ENGINE, pretended=True))["containers"][0]["command"]
    assert set(command) - set(engine.pod(ENGINE)["containers"][0]["command"]) == {"--allow-pretended"}


def test_a_changed_island_check_replaces_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    before = engine.deployment(ENGINE)["spec"]["template"]
    monkeypatch.setattr(island, "SOURCE", "pass\n")
    assert engine.deployment(ENGINE)["spec"]["template"] != before
