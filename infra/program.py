"""The whole program: settings, AWS, platform, serving, outputs; each layer reads only the ones before it."""

import pulumi

from srvmod.contract import counted
from srvmod.infra.aws import layer as aws
from srvmod.infra.outputs import outputs, publish
from srvmod.infra.platform import layer as platform
from srvmod.infra.serving import layer as serving
from srvmod.infra.settings import Settings, SettingsError, from_pulumi_config


def program() -> None:
    """Declare everything of the running stack. Raises RunError, which ends it without a traceback, with every problem
    of its settings."""
    try:
        settings = from_pulumi_config()
    except SettingsError as error:
        raise pulumi.RunError(str(error)) from None
    declare(settings)


def declare(settings: Settings) -> None:
    """Declare everything that `settings` describe."""
    _announce(settings)
    cloud = aws.build(settings)
    base = platform.build(settings, cloud)
    serving.build(settings, cloud, base)
    publish(outputs(settings, cloud, base), cloud.arns)


def _announce(settings: Settings) -> None:
    """Say what was decided, and what is missing, before anything is made."""
    sizing = settings.sizing
    pulumi.log.info(
        f"{settings.stack}: {counted(sizing.min_engines, 'engine')} on {sizing.min_nodes} p5.48xlarge, at most "
        f"{sizing.max_engines} on {sizing.max_nodes}; {sizing.sessions_per_engine} sessions per engine at peak"
    )
    if not sizing.holds:
        missed = ", ".join(limit.value for limit in sizing.missed)
        pulumi.log.warn(
            f"engine.minEngines = {sizing.min_engines} misses at peak traffic: {missed}; "
            f"{counted(sizing.plan.engines_needed, 'engine')} would hold the targets"
        )
    if settings.aws.simulated:
        pulumi.log.warn(f"{settings.stack}: AWS is simulated; engine kind: {settings.engine.kind.value}")
