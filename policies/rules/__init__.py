"""Rules: pure functions from facts to findings, one module per clause."""

from srvmod.policies.rules.finding import Finding, Maker, Rule, Severity, Topic
from srvmod.policies.rules.registry import RULES, judge

__all__ = ["RULES", "Finding", "Maker", "Rule", "Severity", "Topic", "judge"]
