"""Problems of a stack's settings: each names key, value, what is allowed, and the place to fix it."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from srvmod.infra.settings.names import PRODUCT

MOST_SHOWN = 80
SECRET_LOOK = re.compile(r"key|secret|token|password|credential", re.IGNORECASE)


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong.

    `key` is as in the file, such as `srvmod:network.cidr`; `value` is printable and never a secret's; `place` says
    where to fix it, with the line when the file is at hand.
    """

    key: str
    value: str
    problem: str
    allowed: str
    place: str

    def __str__(self) -> str:
        """Three lines: what is wrong, what is allowed, where to fix it."""
        return f"{self.key} = {self.value}: {self.problem}\n  allowed: {self.allowed}\n  fix it in: {self.place}"


class SettingsError(ValueError):
    """A stack's settings can't be used. Holds every problem that was found, in the order of the keys."""

    def __init__(self, problems: Sequence[Problem], stack: str) -> None:
        self.problems = tuple(problems)
        self.stack = stack
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        body = "\n".join(str(problem) for problem in self.problems)
        super().__init__(f"the settings of stack '{stack}' have {count}:\n{body}")


def full_key(path: Sequence[str | int]) -> str:
    """A path in the settings as the file spells it: `srvmod:pool.reservations[0].zone`."""
    key = ""
    for part in path:
        key += f"[{part}]" if isinstance(part, int) else (f".{part}" if key else part)
    return f"{PRODUCT}:{key}"


def show(value: object) -> str:
    """A value for people: short, on one line, and not shown where it is encrypted."""
    if isinstance(value, Mapping) and "secure" in value:
        return "(encrypted)"
    return shorten(_spell(value, depth=3))


def may_be_secret(key: str, value: object) -> bool:
    """Whether a value that isn't expected at all looks, by its key, like a secret that got into the wrong place."""
    return not (value is None or isinstance(value, bool | int | float)) and bool(SECRET_LOOK.search(key))


def shorten(text: str) -> str:
    """Text cut to a length that fits beside its key."""
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def _spell(value: object, depth: int) -> str:
    """YAML-like spelling that looks only so deep and so far: aliases may make a value huge."""
    if isinstance(value, str):
        return json.dumps(value[: 2 * MOST_SHOWN], ensure_ascii=False)
    if value is None or isinstance(value, bool | int | float):
        return json.dumps(value)
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        pairs = list(cast("Mapping[object, object]", value).items())[:8]
        inner = ", ".join(
            f"{shorten(str(k))}: {'(hidden)' if may_be_secret(str(k), v) else _spell(v, depth - 1)}" for k, v in pairs
        )
        return f"{{{inner}}}"
    if isinstance(value, Sequence):
        items = list(cast("Sequence[object]", value)[:8])
        return f"[{', '.join(_spell(item, depth - 1) for item in items)}]"
    return type(value).__name__
