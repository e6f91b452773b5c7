"""What a rule over several settings finds."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from srvmod.infra.settings.places import SettingPath
from srvmod.infra.settings.settings import Settings


@dataclass(frozen=True)
class Finding:
    """A setting that is wrong because of another one. `path` is the setting to change."""

    path: SettingPath
    problem: str
    allowed: str
    value: object = None
    """The value in effect, when the file doesn't give one."""


Rule = Callable[[Settings], Iterator[Finding]]
