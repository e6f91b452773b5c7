"""Settings inside a Pulumi program: config as the engine passes it, by variable or by environment."""

import contextvars
import json
from collections.abc import Callable
from pathlib import Path

import pulumi
import pytest
from pulumi.runtime import config as pulumi_config
from pulumi.runtime import mocks

from srvmod.infra.settings import Settings, SettingsError, from_pulumi_config
from tests.infra.bad_configs.base import GOOD, changed, write

VALUES = {f"srvmod:{name}": json.dumps(section) for name, section in GOOD.items()}
KEYS = {"srvmod:apiKeys": '{"web": "sk-123456"}'}


class _NoResources(mocks.Mocks):
    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, object]]:
        raise AssertionError(args.name)

    def call(self, args: mocks.MockCallArgs) -> dict[str, object]:
        raise AssertionError(args.token)


def in_program(config: dict[str, str], secret: list[str]) -> Settings:
    """Settings as a program of stack `case` sees them."""

    def program() -> Settings:
        mocks.set_mocks(_NoResources(), project="srvmod", stack="case")
        pulumi_config.set_all_config(config, secret)
        return from_pulumi_config()

    return contextvars.copy_context().run(program)


def test_config_of_a_program() -> None:
    settings = in_program({**VALUES, **KEYS, "aws:region": "eu-west-2"}, ["srvmod:apiKeys"])
    assert settings.stack == "case"
    assert settings.traffic.sessions == 650
    assert settings.cluster_name == "srvmod-case"


def test_api_keys_are_left_to_the_program() -> None:
    def program() -> object:
        mocks.set_mocks(_NoResources(), project="srvmod", stack="case")
        pulumi_config.set_all_config({**VALUES, **KEYS}, ["srvmod:apiKeys"])
        from_pulumi_config()
        return pulumi.Config("srvmod").require_secret_object("apiKeys")

    assert isinstance(contextvars.copy_context().run(program), pulumi.Output)


def test_config_by_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """`pulumi up` passes config to the language host's program in the environment."""
    monkeypatch.setenv("PULUMI_CONFIG", json.dumps({**VALUES, **KEYS}))
    monkeypatch.setenv("PULUMI_CONFIG_SECRET_KEYS", json.dumps(["srvmod:apiKeys"]))
    assert in_program({}, []).traffic.sessions == 650


@pytest.mark.parametrize(
    ("changes", "secret", "says"),
    [
        ({"srvmod:traffic": "650"}, ["srvmod:apiKeys"], "srvmod:traffic = 650"),
        ({"srvmod:traffic": "{not json"}, ["srvmod:apiKeys"], "srvmod:traffic"),
        ({}, [], "secret in the clear"),
        ({}, ["srvmod:apiKeys", "srvmod:model"], "is encrypted"),
    ],
)
def test_config_that_is_refused(changes: dict[str, str], secret: list[str], says: str) -> None:
    with pytest.raises(SettingsError) as caught:
        in_program({**VALUES, **KEYS, **changes}, secret)
    assert says in str(caught.value)
    assert "sk-" not in str(caught.value)


def test_problems_name_lines_of_the_stacks_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(changed({"traffic.sessions": 0}), tmp_path)
    monkeypatch.setattr("pulumi.runtime.settings.get_root_directory", _returning(str(tmp_path)))
    bad = {**VALUES, "srvmod:traffic": json.dumps({**GOOD["traffic"], "sessions": 0})}
    with pytest.raises(SettingsError) as caught:
        in_program(bad, [])
    place = caught.value.problems[0].place
    line = int(place.rpartition(" ")[2])
    assert "sessions: 0" in file.read_text().splitlines()[line - 1]


def _returning(value: str) -> Callable[[], str]:
    return lambda: value
