"""The answers as a table, and as JSON."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.answers import Answer, Verdict, exit_code

STYLES = {Verdict.OK: "green", Verdict.WILL_FAIL: "bold red", Verdict.CANT_TELL: "yellow"}
CONCLUSIONS = {
    0: "the account has what {env} needs, as far as can be asked",
    1: "{env} would fail: do first what stands under 'will fail'",
    2: "nothing is known to be missing, but the account didn't answer everything: do what stands above and ask again",
}


def as_json(needs: AccountNeeds, answers: Sequence[Answer]) -> str:
    """One object: the environment, its account, the verdict as an exit code, and every answer."""
    return json.dumps(
        {
            "environment": needs.environment,
            "accountId": needs.account_id,
            "region": needs.region,
            "exitCode": exit_code(answers),
            "missingPermissions": _permissions(answers),
            "answers": [answer.as_json() for answer in answers],
        },
        indent=2,
    )


@dataclass(frozen=True)
class Line:
    """What is shown at once: one answer, or all that can't be told for one reason."""

    subject: str
    verdict: Verdict
    found: str
    needed: str
    do: str


def lines(answers: Sequence[Answer]) -> list[Line]:
    """One line for each answer, and one for all that share a cause: a throttled account says it once."""
    shared: dict[tuple[str, str], list[Answer]] = {}
    for answer in answers:
        if answer.verdict is Verdict.CANT_TELL:
            shared.setdefault(_cause(answer), []).append(answer)
    found: list[Line] = []
    for answer in answers:
        alike = shared.get(_cause(answer), []) if answer.verdict is Verdict.CANT_TELL else []
        if len(alike) < 2:
            found.append(Line(answer.subject, answer.verdict, answer.found, answer.needed, answer.do))
        elif answer is alike[0]:
            found.append(_together(alike))
    return found


def _cause(answer: Answer) -> tuple[str, str]:
    return ("denied", "") if answer.missing_permission else (answer.found, answer.do)


def _together(alike: Sequence[Answer]) -> Line:
    first, names = alike[0], ", ".join(answer.subject for answer in alike)
    permissions = _permissions(alike)
    if permissions:
        why, do = f"denied: {len(permissions)} permissions", f"allow to whoever runs this: {', '.join(permissions)}"
        return Line(f"{len(alike)} needs", first.verdict, why, names, f"{do}\n{ALL_PERMISSIONS}")
    return Line(f"{len(alike)} needs", first.verdict, first.found, names, first.do)


ALL_PERMISSIONS = "everything that preflight asks, as an IAM policy: the same command with --permissions"
"""A check stops at the first call that is denied: its others would be missed one by one."""


def _permissions(answers: Sequence[Answer]) -> list[str]:
    return sorted({answer.missing_permission for answer in answers if answer.missing_permission})


def show(needs: AccountNeeds, answers: Sequence[Answer], console: Console) -> None:
    """A table; then what to do, in full, because commands are copied from there; the conclusion last."""
    table = Table(title=f"{needs.environment}: account {needs.account_id}, {needs.region}", title_justify="left")
    for column in ("need", "answer", "found", "needed"):
        table.add_column(column, overflow="fold")
    shown = lines(answers)
    for line in shown:
        verdict = f"[{STYLES[line.verdict]}]{line.verdict.value}[/]"
        table.add_row(_plain(line.subject), verdict, _plain(line.found), _plain(line.needed))
    console.print(table)
    for wanted in (Verdict.CANT_TELL, Verdict.WILL_FAIL):  # the worst stands last, where the eye is
        for line in shown:
            if line.verdict is wanted and line.do:
                heading = f"{_plain(line.subject)}: {_plain(line.found)}"
                console.print(f"[{STYLES[wanted]}]{wanted.value}[/]: {heading}", soft_wrap=True)
                for part in line.do.splitlines():
                    console.print(f"    {_plain(part)}", soft_wrap=True)
    counts = ", ".join(f"{sum(answer.verdict is verdict for answer in answers)} {verdict.value}" for verdict in Verdict)
    console.print(f"{counts}: {CONCLUSIONS[exit_code(answers)].format(env=needs.environment)}", soft_wrap=True)


def _plain(text: str) -> str:
    """Text that rich prints as it is."""
    return text.replace("[", r"\[")
