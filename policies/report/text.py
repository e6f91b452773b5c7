"""For people: one block per finding, then what was waived, what wasn't judged, and the sum."""

from __future__ import annotations

from srvmod.contract import counted
from srvmod.policies.check import Result
from srvmod.policies.rules import Finding, Severity

MOST_SHOWN = 400
WORDS = {
    Severity.ERROR: "error",
    Severity.UNKNOWN: "can't tell",
    Severity.WARNING: "warning",
    Severity.NOTE: "not judged",
}


def render(result: Result) -> str:
    """The whole report."""
    lines: list[str] = []
    for unread in result.unread:
        lines.append(f"{unread.place}: can't read: {one_line(unread.why)}")
        if unread.fix:
            lines.append(f"  fix: {unread.fix}")
    for finding in result.findings:
        lines.extend(_block(finding))
    for finding, waiver in result.waived:
        lines.append(f"{finding.place}: waived: {finding.clause} until {waiver.until}: {waiver.reason}")
        lines.append(f"  {one_line(finding.what)}")
    lines.append(summary(result))
    return "\n".join(lines) + "\n"


def _block(finding: Finding) -> list[str]:
    place = finding.place
    lines = [f"{place}: {WORDS[finding.severity]}: {finding.clause}: {one_line(finding.what)} [{finding.rule}]"]
    where = " ".join(part for part in (place.object, place.path) if part)
    if where:
        lines.append(f"  at:  {where}")
    if finding.severity is not Severity.NOTE:
        lines.append(f"  why: {finding.why}")
    if finding.fix:
        lines.append(f"  fix: {finding.fix}")
    return lines


def one_line(text: str) -> str:
    """A text that may hold a value of the input, on one line and not too long."""
    joined = " ".join(text.split())
    return joined if len(joined) <= MOST_SHOWN else f"{joined[:MOST_SHOWN]}…"


def summary(result: Result) -> str:
    """One line of counts."""
    world = result.world
    parts = [
        counted(len(result.of(Severity.ERROR)), "error"),
        f"{len(result.of(Severity.UNKNOWN))} can't tell",
        f"{len(result.unread)} can't read",
        counted(len(result.of(Severity.WARNING)), "warning"),
        f"{len(result.waived)} waived",
    ]
    judged = ", ".join(
        counted(number, thing)
        for number, thing in ((world.files, "file"), (world.objects, "object"), (len(world.engines), "engine"))
    )
    return f"{judged}: {', '.join(parts)}"
