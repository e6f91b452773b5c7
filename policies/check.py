"""A check: facts, findings, waivers, and the exit code that follows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from srvmod.policies.config import Config
from srvmod.policies.facts import Place, Unread, Waiver, World
from srvmod.policies.readers.world import of_paths
from srvmod.policies.rules import RULES, Finding, Maker, Rule, Severity, Topic, judge

OK, VIOLATIONS, UNREADABLE = 0, 1, 2

WAIVER = Maker(
    Topic.OPERATIONS, "waiver", "a deviation without reason and last day is a deviation that nobody looks at again"
)
SPELLING = "waive CLAUSE until YYYY-MM-DD: reason"


@dataclass(frozen=True)
class Result:
    """What a check says. `findings` are those that count; `waived` those that a waiver covers, with it."""

    world: World
    findings: tuple[Finding, ...]
    waived: tuple[tuple[Finding, Waiver], ...]

    @property
    def unread(self) -> tuple[Unread, ...]:
        """Input that couldn't be read."""
        return self.world.unread

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """Findings of one severity."""
        return tuple(finding for finding in self.findings if finding.severity is severity)

    @property
    def exit_code(self) -> int:
        """1 with violations, else 2 where something can't be read or told, else 0."""
        if self.of(Severity.ERROR):
            return VIOLATIONS
        return UNREADABLE if self.unread or self.of(Severity.UNKNOWN) else OK


def check(paths: Sequence[str], config: Config, today: date | None = None, rules: tuple[Rule, ...] = RULES) -> Result:
    """Check files and folders."""
    return judged(of_paths(paths, config.engine_version), config, today, rules)


def judged(world: World, config: Config, today: date | None = None, rules: tuple[Rule, ...] = RULES) -> Result:
    """Judge facts that were read already."""
    today = today or date.today()
    counted: list[Finding] = []
    waived: list[tuple[Finding, Waiver]] = []
    used: set[Waiver] = set()
    usable = [waiver for waiver in world.waivers if not waiver.problem]
    for finding in judge(world, config, rules):
        waiver = next((one for one in usable if covers(one, finding)), None)
        if waiver is not None:
            used.add(waiver)
        if waiver is None or waiver.until is None or waiver.until < today or finding.severity is Severity.NOTE:
            counted.append(finding)
        else:
            waived.append((finding, waiver))
    counted.extend(_of_waivers(world, used, today))
    return Result(world, tuple(counted), tuple(waived))


def covers(waiver: Waiver, finding: Finding) -> bool:
    """Whether a waiver speaks of a finding."""
    if waiver.clause not in {finding.clause.value, f"{finding.clause.value}/{finding.rule}"}:
        return False
    if waiver.place.source != finding.place.source:
        return False
    return waiver.line == finding.place.line if waiver.line is not None else waiver.object == finding.place.object


def _of_waivers(world: World, used: set[Waiver], today: date) -> list[Finding]:
    found: list[Finding] = []
    for waiver in world.waivers:
        place: Place = waiver.place
        if waiver.problem:
            found.append(WAIVER.error(place, f"a waiver {waiver.problem}", SPELLING))
        elif waiver.until is not None and waiver.until < today:
            found.append(
                WAIVER.error(place, f"the waiver of {waiver.clause} ended on {waiver.until}", "repair, or renew it")
            )
        elif waiver not in used:
            found.append(WAIVER.warning(place, f"the waiver of {waiver.clause} covers nothing", "take it away"))
    return found
