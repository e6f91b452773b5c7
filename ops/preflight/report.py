"""The answers as a table, and as JSON."""

import json
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from srvmod.contract.account_needs import AccountNeeds
from srvmod.ops.preflight.answers import Answer, Verdict, exit_code

STYLES = {Verdict.OK: "green", Verdict.WILL_FAIL: "bold red", Verdict.CANT_TELL: "yellow"}


def as_json(needs: AccountNeeds, answers: Sequence[Answer]) -> str:
    """One object: the environment, its account, the verdict as an exit code, and every answer."""
    return json.dumps(
        {
            "environment": needs.environment,
            "accountId": needs.account_id,
            "region": needs.region,
            "exitCode": exit_code(answers),
            "answers": [answer.as_json() for answer in answers],
        },
        indent=2,
    )


def show(needs: AccountNeeds, answers: Sequence[Answer], console: Console) -> None:
    """A table, then what to do, in full: commands are copied from there."""
    table = Table(title=f"{needs.environment}: account {needs.account_id}, {needs.region}", title_justify="left")
    for column in ("need", "answer", "found", "needed"):
        table.add_column(column, overflow="fold")
    for answer in answers:
        verdict = f"[{STYLES[answer.verdict]}]{answer.verdict.value}[/]"
        table.add_row(_plain(answer.subject), verdict, _plain(answer.found), _plain(answer.needed))
    console.print(table)
    for answer in answers:
        if answer.do:
            console.print(f"[{STYLES[answer.verdict]}]{answer.verdict.value}[/]: {_plain(answer.subject)}")
            console.print(f"    {_plain(answer.do)}", soft_wrap=True)
    counts = ", ".join(f"{sum(answer.verdict is verdict for answer in answers)} {verdict.value}" for verdict in Verdict)
    console.print(counts)


def _plain(text: str) -> str:
    """Text that rich prints as it is."""
    return text.replace("[", r"\[")
