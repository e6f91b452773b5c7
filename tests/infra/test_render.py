"""Rendered manifests: fresh, repeatable, and a check that names what differs."""

import shutil
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from srvmod.contract.stack_files import environments
from srvmod.infra.commands import app
from srvmod.infra.render.environments import differences, rendered
from srvmod.infra.render.recorder import record
from tests.infra.environment import ENVIRONMENTS, ROOT, graph, manifests, settings_of


def test_every_stack_file_is_an_environment() -> None:
    assert environments(ROOT) == sorted(ENVIRONMENTS)


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_committed_manifests_are_fresh(env: str) -> None:
    stale = [f"{difference.path.name} {difference.what}" for difference in differences(ROOT, env, manifests(env))]
    assert stale == [], "run: srvmod render"


def test_rendering_twice_gives_the_same_bytes() -> None:
    assert rendered(ROOT, "local") == manifests("local")


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_files_are_sorted_yaml_with_masked_secrets(env: str) -> None:
    contents = manifests(env)
    assert list(contents) == sorted(contents)
    for name, text in contents.items():
        if name.endswith(".yaml"):
            document = yaml.load(text, yaml.CSafeLoader)
            assert "placeholder-key" not in text
            assert list(document.get("spec", {})) == sorted(document.get("spec", {})), name
    assert "[secret]" in contents["serving/secret-client-keys.yaml"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the local environment: its stack file and manifests."""
    shutil.copy(ROOT / "Pulumi.local.yaml", tmp_path)
    shutil.copytree(ROOT / "manifests" / "local", tmp_path / "manifests" / "local")
    return tmp_path


@pytest.fixture
def rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command gets what was rendered before: these tests are about what it does with it."""
    monkeypatch.setattr("srvmod.infra.render.environments.rendered", lambda root, env: manifests(env))


def check(project: Path, *options: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["--root", str(project), "--env", "local", *options])
    return result.exit_code, result.output


def test_check_passes_on_what_was_rendered(project: Path) -> None:
    assert check(project, "--check")[0] == 0


@pytest.mark.usefixtures("rendered_once")
def test_check_names_a_file_with_one_changed_character(project: Path) -> None:
    file = project / "manifests/local/serving/scaledobject-engine.yaml"
    file.write_text(file.read_text().replace("minReplicaCount: 2", "minReplicaCount: 3"))
    code, output = check(project, "--check")
    assert code == 1
    assert "manifests/local/serving/scaledobject-engine.yaml differs" in output
    assert "-  minReplicaCount: 3" in output
    assert "+  minReplicaCount: 2" in output
    assert "clusterrole" not in output


@pytest.mark.usefixtures("rendered_once")
def test_check_names_missing_and_left_over_files(project: Path) -> None:
    (project / "manifests/local/cluster/nodepool-p5-tp4.yaml").unlink()
    (project / "manifests/local/serving/own.yaml").write_text("a: 1\n")
    code, output = check(project, "--check")
    assert code == 1
    assert "nodepool-p5-tp4.yaml is missing" in output
    assert "own.yaml is left over" in output


@pytest.mark.usefixtures("rendered_once")
def test_render_replaces_the_folder(project: Path) -> None:
    left_over = project / "manifests/local/serving/own.yaml"
    left_over.write_text("a: 1\n")
    assert check(project)[0] == 0
    assert not left_over.exists()
    assert check(project, "--check")[0] == 0


def test_unknown_environment_is_named() -> None:
    result = CliRunner().invoke(app, ["--env", "nowhere"])
    assert result.exit_code == 2
    assert "--env nowhere" in result.output
    assert "prod" in result.output


def test_bad_settings_are_shown_whole(project: Path) -> None:
    file = project / "Pulumi.local.yaml"
    file.write_text(file.read_text().replace("sessions: 16", "sessions: 0"))
    code, output = check(project, "--check")
    assert code == 1
    assert "traffic.sessions" in output


def test_errors_of_a_program_are_its_own() -> None:
    def broken() -> None:
        raise ValueError("somewhere = 1; allowed: 2")

    with pytest.raises(ValueError, match="somewhere = 1"):
        record(broken, stack="local")


def test_runs_do_not_see_each_other() -> None:
    """The recorder is used many times in one process."""
    first = set(graph("local").resources)
    assert record(lambda: None, stack="other").resources == {}
    assert set(rendered(ROOT, "local")) == set(manifests("local"))
    assert set(graph("local").resources) == first
    assert settings_of("local").stack == "local"
