"""The one error of this room: a tool that can't be had, with what was expected, what was found and what to do."""

from __future__ import annotations


class ToolError(Exception):
    """A tool is missing, can't be built or isn't what it should be.

    `problem` names the tool, what was expected and what was found; `fix` says how to mend it.
    """

    def __init__(self, problem: str, fix: str) -> None:
        super().__init__(f"{problem}\n  fix: {fix}")
        self.problem = problem
        self.fix = fix
