"""`srvmod images`: the container images that an environment runs, and the commands that copy them into a mirror."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from srvmod.infra.environments import WRONG_INPUT, judged

if TYPE_CHECKING:
    from srvmod.infra.settings import Settings

ROOT = Path(__file__).resolve().parent.parent


def images(
    env: Annotated[str, typer.Option("--env", "-e", help="Environment: the stack's name.")],
    mirror_to: Annotated[
        str | None,
        typer.Option("--mirror-to", help="Registry with a path; prints `crane copy` commands, to be piped to sh."),
    ] = None,
    root: Annotated[Path, typer.Option(help="Folder with Pulumi.<env>.yaml.")] = ROOT,
) -> None:
    """Images by their own registries, whatever mirror the environment uses: its own objects' and its charts'.

    Lines that begin with # say what can't be listed here, and how to ask for it.
    """
    judged([env], root)
    from srvmod.infra.settings import ChartMode, SettingsError, load_stack_file
    from srvmod.infra.versions import PROMETHEUS_STACK, VLLM

    try:
        settings = load_stack_file(root / f"Pulumi.{env}.yaml")
    except SettingsError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(WRONG_INPUT) from None
    mirror = mirror_to or settings.images.registry
    engine = settings.engine.image
    if mirror and engine.startswith(f"{mirror}/"):
        engine = VLLM.reference  # what the mirror's copy was made from
    for source in sorted({*_pinned(settings), engine}):
        typer.echo(source if mirror_to is None else f"crane copy {source} {target(mirror_to, source)}")
    if settings.charts.prometheus_stack is ChartMode.INSTALL:
        chart = f"{PROMETHEUS_STACK.name} --repo {PROMETHEUS_STACK.repository} --version {PROMETHEUS_STACK.version}"
        typer.echo(f"# and those of kube-prometheus-stack: helm template x {chart} | grep image:")


def _pinned(settings: "Settings") -> set[str]:
    from srvmod.infra import versions
    from srvmod.infra.settings import ChartMode

    charts = settings.charts
    found = [versions.NVIDIA_DEVICE_PLUGIN, versions.DCGM_EXPORTER, versions.ENVOY]
    for mode, own in (
        (charts.envoy_gateway, (versions.ENVOY_GATEWAY_IMAGE,)),
        (charts.karpenter, (versions.KARPENTER_IMAGE,)),
        (charts.load_balancer_controller, (versions.LOAD_BALANCER_CONTROLLER_IMAGE,)),
        (charts.keda, versions.KEDA_IMAGES),
    ):
        if mode is ChartMode.INSTALL:
            found += own
    return {image.reference for image in found}


def target(mirror: str, source: str) -> str:
    """Where an image lies in a mirror: the same path and tag; a digest can't be asked for, it comes with the copy."""
    path = source.partition("/")[2]
    name, at, _ = path.partition("@")
    return f"{mirror}/{name}" if at else f"{mirror}/{path}"
