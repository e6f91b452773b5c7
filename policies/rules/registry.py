"""Every rule, and running them."""

from __future__ import annotations

from dataclasses import replace

from srvmod.policies.config import Config
from srvmod.policies.facts import World
from srvmod.policies.rules import (
    batching,
    engine_version,
    hardware,
    islands,
    latency,
    memory,
    operations,
    planned,
    speculation,
    steps,
    streaming,
)
from srvmod.policies.rules.finding import Finding, Rule, Severity

RULES: tuple[Rule, ...] = (
    *hardware.RULES,
    *islands.RULES,
    *memory.RULES,
    *batching.RULES,
    *streaming.RULES,
    *latency.RULES,
    *steps.RULES,
    *speculation.RULES,
    *planned.RULES,
    *engine_version.RULES,
    *operations.RULES,
)
"""In the order in which findings of one place are shown."""


def judge(world: World, config: Config, rules: tuple[Rule, ...] = RULES) -> list[Finding]:
    """All findings, by place. Levels of the configuration turn errors into warnings, or off."""
    findings: list[Finding] = []
    for rule in rules:
        for finding in rule(world, config):
            level = config.levels.get(f"{finding.clause}/{finding.rule}") or config.levels.get(finding.clause)
            if level == "off":
                continue
            if level == "warning" and finding.severity is Severity.ERROR:
                findings.append(replace(finding, severity=Severity.WARNING))
            else:
                findings.append(finding)
    return sorted(_once(findings), key=lambda f: (f.place.source, f.place.line or 0, f.place.path, f.clause, f.rule))


def _once(findings: list[Finding]) -> list[Finding]:
    """Each finding once; of what can't be told because of one place, one per clause."""
    kept: dict[object, Finding] = {}
    for finding in findings:
        reason = finding.what.partition(": ")[2]
        key = (finding.clause, finding.place, reason) if finding.severity is Severity.UNKNOWN else finding
        kept.setdefault(key, finding)
    return list(kept.values())
