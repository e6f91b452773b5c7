"""The one kind of error that `srvmod local` shows a person: what happened, where, and what to do."""

from __future__ import annotations


class LocalError(Exception):
    """`what` happened (with the value found), `fix` is the next command or change."""

    def __init__(self, what: str, fix: str) -> None:
        super().__init__(f"{what}\n  fix: {fix}")
        self.what, self.fix = what, fix
