"""`srvmod images`: every image that our own objects name, and copies to where a mirrored stack looks for them."""

import re

import pytest
import typer
import yaml
from typer.testing import CliRunner

from srvmod.infra import identifiers, versions
from srvmod.infra.images_commands import images, target
from srvmod.infra.settings import ChartMode, Settings
from tests.infra.environment import ROOT, settings_of

MIRROR = "111122223333.dkr.ecr.us-east-1.amazonaws.com/mirror"


def lines(*arguments: str) -> list[str]:
    app = typer.Typer()
    app.command()(images)
    shown = CliRunner().invoke(app, list(arguments))
    assert shown.exit_code == 0, shown.output
    return shown.stdout.splitlines()


def test_it_lists_what_the_rendered_objects_run() -> None:
    named: set[str] = set()
    for file in (ROOT / "manifests/prod").rglob("*.yaml"):
        if file.parent.name != "charts":
            named |= set(re.findall(r"image: (\S+)", yaml.safe_dump(yaml.safe_load(file.read_text(encoding="utf-8")))))
    own = settings_of("prod").weight_cache_image
    assert named - {own} <= set(lines("--env", "prod"))


def test_charts_bring_theirs_unless_they_are_there_already() -> None:
    assert {versions.KARPENTER_IMAGE.reference, *(image.reference for image in versions.KEDA_IMAGES)} <= set(
        lines("--env", "prod")
    )
    local = lines("--env", "local")
    assert settings_of("local").charts.keda is ChartMode.EXISTING
    assert not [line for line in local if "kedacore" in line or line.startswith("#")]


def test_what_it_cant_list_is_a_comment_to_sh() -> None:
    assert [line for line in lines("--env", "prod", "--mirror-to", MIRROR) if not line.startswith("crane copy ")] == [
        f"# and those of kube-prometheus-stack: helm template x kube-prometheus-stack --repo "
        f"{versions.PROMETHEUS_STACK.repository} --version {versions.PROMETHEUS_STACK.version} | grep image:"
    ]


@pytest.mark.parametrize("pinned", [versions.ENVOY, versions.NVIDIA_DEVICE_PLUGIN], ids=lambda image: image.repository)
def test_a_copy_lies_where_a_mirrored_stack_looks(pinned: versions.Image) -> None:
    settings = settings_of("prod")
    sections = {name: getattr(settings, name) for name in Settings.model_fields}
    mirrored = Settings(**{**sections, "images": settings.images.model_copy(update={"registry": MIRROR})})
    looked_for = identifiers.image(mirrored, pinned)
    assert looked_for.partition("@")[0] == target(MIRROR, pinned.reference)
    assert f"crane copy {pinned.reference} {target(MIRROR, pinned.reference)}" in lines(
        "--env", "prod", "--mirror-to", MIRROR
    )
