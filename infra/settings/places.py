"""Where in a stack's file a setting is, or belongs."""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from srvmod.infra.settings.problems import Problem, full_key, may_be_secret, show

SettingPath = tuple[str | int, ...]
Lines = Mapping[SettingPath, int]
"""Line (from 1) of each setting that a file has, by path."""


@dataclass(frozen=True)
class Places:
    """Finds places in one stack's file, and makes problems that name them."""

    stack: str
    source: Path | None
    lines: Lines

    @property
    def file(self) -> str:
        """Name of the file to edit."""
        return self.source.name if self.source else f"Pulumi.{self.stack}.yaml"

    def place(self, path: SettingPath) -> str:
        """File and line of a setting; for one that isn't there, of the nearest one around it."""
        if not self.lines:
            return self.file
        for length in range(len(path), 0, -1):
            line = self.lines.get(path[:length])
            if line is not None:
                return f"{self.file}, line {line}"
        return f"{self.file}, under config"

    def problem(self, path: SettingPath, value: object, problem: str, allowed: str) -> Problem:
        """A problem with a value that is there."""
        return Problem(
            key=full_key(path),
            value=show(value),
            problem=problem,
            allowed=allowed,
            place=self.place(path),
        )

    def missing(self, path: SettingPath, allowed: str) -> Problem:
        """A problem with a value that isn't there."""
        return Problem(
            key=full_key(path),
            value="(missing)",
            problem="is required",
            allowed=allowed,
            place=self.place(path),
        )

    def unknown(self, path: SettingPath, value: object, known: Iterable[str]) -> Problem:
        """A problem with a key that doesn't exist, with the nearest one that does."""
        names = sorted(known)
        by_folded = {_folded(name): name for name in names}
        near = difflib.get_close_matches(_folded(str(path[-1])), list(by_folded), n=1, cutoff=0.6)
        hint = f"; did you mean '{by_folded[near[0]]}'?" if near else ""
        return Problem(
            key=full_key(path),
            value="(hidden)" if may_be_secret(str(path[-1]), value) else show(value),
            problem=f"isn't a setting{hint}",
            allowed=f"the keys {', '.join(names)}",
            place=self.place(path),
        )


def _folded(name: str) -> str:
    """A key without case and separators, so that snake_case and kebab-case are near camelCase."""
    return name.replace("_", "").replace("-", "").lower()
