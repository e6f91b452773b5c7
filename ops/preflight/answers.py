"""What preflight says about one need."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Verdict(StrEnum):
    """Whether a deployment would get what it needs."""

    OK = "ok"
    WILL_FAIL = "will fail"
    CANT_TELL = "can't tell"


@dataclass(frozen=True)
class Answer:
    """One need: what the account has, what is needed, and what to do (empty when there is nothing to do)."""

    subject: str
    verdict: Verdict
    found: str
    needed: str
    do: str = ""
    missing_permission: str | None = None
    """IAM action that the question needed and the caller hasn't."""

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "verdict": self.verdict.value}


def ok(subject: str, found: str, needed: str) -> Answer:
    """The account has it."""
    return Answer(subject, Verdict.OK, found, needed)


def will_fail(subject: str, found: str, needed: str, do: str) -> Answer:
    """The account hasn't got it."""
    return Answer(subject, Verdict.WILL_FAIL, found, needed, do)


def cant_tell(subject: str, found: str, needed: str, do: str = "", missing_permission: str | None = None) -> Answer:
    """The account didn't say."""
    return Answer(subject, Verdict.CANT_TELL, found, needed, do, missing_permission)


def exit_code(answers: Iterable[Answer]) -> int:
    """0 all ok, 1 something will fail, 2 nothing will fail as far as known, but something can't be told."""
    verdicts = {answer.verdict for answer in answers}
    if Verdict.WILL_FAIL in verdicts:
        return 1
    return 2 if Verdict.CANT_TELL in verdicts else 0
