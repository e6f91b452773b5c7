"""Rules over several settings. Each runs on its own, also while other settings are wrong."""

from collections.abc import Mapping
from typing import Any

from srvmod.capacity import CapacityError
from srvmod.infra.settings.explain import value_at
from srvmod.infra.settings.holes import UnavailableError
from srvmod.infra.settings.places import Places
from srvmod.infra.settings.problems import Problem
from srvmod.infra.settings.rules import cluster, edge, engine, monitoring, network, placement, pool
from srvmod.infra.settings.rules.finding import Finding, Rule
from srvmod.infra.settings.settings import Settings

RULES: tuple[Rule, ...] = (
    *network.RULES,
    *cluster.RULES,
    *pool.RULES,
    *engine.RULES,
    *edge.RULES,
    *placement.RULES,
    *monitoring.RULES,
)


def check(settings: Settings, raw: Mapping[str, Any], places: Places) -> list[Problem]:
    """Problems that the rules find. `settings` may have holes; a rule that needs one finds nothing."""
    return [_problem(finding, raw, places) for rule in RULES for finding in _findings(rule, settings)]


def _findings(rule: Rule, settings: Settings) -> list[Finding]:
    try:
        return list(rule(settings))
    except (UnavailableError, CapacityError):
        return []  # reported already: as a wrong value, or by the rule that asks for the plan itself


def _problem(finding: Finding, raw: Mapping[str, Any], places: Places) -> Problem:
    value = value_at(raw, finding.path)
    if value is None:
        value = finding.value
    if value is None:
        return Problem(
            key=places.missing(finding.path, finding.allowed).key,
            value="(missing)",
            problem=finding.problem,
            allowed=finding.allowed,
            place=places.place(finding.path),
        )
    return places.problem(finding.path, value, finding.problem, finding.allowed)
