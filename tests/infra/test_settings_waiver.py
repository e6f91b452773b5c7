"""A plan that misses its targets in prod needs somebody's name; anywhere else it is visible."""

import copy
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from srvmod.infra.serving.documents.engine import deployment
from srvmod.infra.serving.layer import engine_of
from srvmod.infra.settings import Settings, SettingsError
from srvmod.infra.settings.loading import load
from srvmod.policies.config import Config
from srvmod.policies.engine_versions import DEFAULT_VERSION
from srvmod.policies.readers.world import of_text
from srvmod.policies.rules import Severity
from srvmod.policies.rules.planned import planned
from tests.infra.bad_configs.base import GOOD

WAIVER = "head-of-ml: the mix is a forecast, traffic starts at a tenth"

PLATFORM: Any = SimpleNamespace(namespace="serving", pool="p5-tp4")


def stack(name: str, **engine: Any) -> Settings:
    raw = copy.deepcopy(GOOD)
    raw["engine"].update(engine)
    raw["cluster"]["deletionProtection"] = name == "prod"
    return load(raw, stack=name)


def test_prod_refuses_too_few_engines_without_a_name() -> None:
    with pytest.raises(SettingsError) as caught:
        stack("prod", minEngines=2)
    [problem] = caught.value.problems
    assert problem.key == "srvmod:engine.minEngines"
    assert "misses at peak traffic: inter-token latency, tokens per second" in str(caught.value)
    assert "engine.planWaiver" in str(caught.value)


def test_prod_takes_them_with_a_name() -> None:
    settings = stack("prod", minEngines=2, planWaiver=WAIVER)
    assert settings.sizing.missed
    assert settings.engine.plan_waiver == WAIVER


def test_elsewhere_no_name_is_needed() -> None:
    assert stack("staging", minEngines=2).sizing.missed


def test_a_waiver_ends_with_what_it_waives() -> None:
    with pytest.raises(SettingsError, match="waives nothing"):
        stack("prod", planWaiver=WAIVER)


@pytest.mark.parametrize("waiver", ["", "ok", "me", ": no name at all", "me: short", "no colon but a long sentence"])
def test_a_waiver_says_who_and_why(waiver: str) -> None:
    with pytest.raises(SettingsError, match="who accepts it and why"):
        stack("prod", minEngines=2, planWaiver=waiver)


def test_the_verdict_is_an_output_and_what_policies_see() -> None:
    """The waiver and the traffic are on the engine's Deployment, where `srvmod check` and the pack judge them."""
    settings = stack("prod", minEngines=2, planWaiver=WAIVER)
    engine = engine_of(settings, PLATFORM)
    document = yaml.safe_dump(deployment(engine))
    world = of_text(document, "engine.yaml", DEFAULT_VERSION)
    found = [finding for finding in planned(world, Config()) if finding.rule == "planned"]
    assert [finding.severity for finding in found] == [Severity.WARNING]
    assert f"accepted by {WAIVER}" in found[0].what
    assert "inter-token latency" in found[0].what


def test_a_plan_that_holds_is_no_finding() -> None:
    document = yaml.safe_dump(deployment(engine_of(stack("prod"), PLATFORM)))
    assert not list(planned(of_text(document, "engine.yaml", DEFAULT_VERSION), Config()))
