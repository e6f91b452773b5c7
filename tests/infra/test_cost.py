"""The cost picture: counts follow the settings, prices only ever come from them, and what is missing is named."""

import json
from datetime import date

import pytest
from typer.testing import CliRunner

from srvmod.infra.cost import HOURS_PER_MONTH, picture
from srvmod.infra.settings import Price, Settings
from tests.infra.environment import settings_of


def with_prices(settings: Settings, **usd: float) -> Settings:
    prices = {
        name: Price.model_validate({"usd": value, "readOn": date(2026, 11, 29), "source": "a contract"})
        for name, value in usd.items()
    }
    sections = {name: getattr(settings, name) for name in Settings.model_fields}
    return Settings(**{**sections, "prices": settings.prices.model_construct(**prices)})


def test_nodes_are_what_the_planner_says() -> None:
    settings = with_prices(settings_of("prod"), gpu_node=10.0)
    found = picture(settings)
    assert found.lines[0].units == settings.sizing.min_nodes
    assert found.usd_per_hour == pytest.approx(10.0 * settings.sizing.min_nodes)
    assert found.usd_per_month == pytest.approx(found.usd_per_hour * HOURS_PER_MONTH)
    assert found.most_usd_per_hour == pytest.approx(10.0 * settings.sizing.max_nodes)
    assert found.usd_per_million_tokens == pytest.approx(found.usd_per_hour / (found.tokens_per_second * 0.0036))


def test_a_quarter_of_the_traffic_costs_four_times_as_much_per_token() -> None:
    settings = with_prices(settings_of("prod"), gpu_node=10.0)
    peak, quarter = picture(settings).usd_per_million_tokens, picture(settings, 0.25).usd_per_million_tokens
    assert peak
    assert quarter == pytest.approx(4 * peak)


def test_without_prices_everything_is_missing_and_nothing_is_guessed() -> None:
    found = picture(with_prices(settings_of("prod")))
    assert found.missing == [f"prices.{line.key}" for line in found.lines if line.units]
    assert found.usd_per_hour == 0
    assert found.usd_per_million_tokens is None
    assert found.most_usd_per_hour is None


@pytest.mark.parametrize("env", ["dev", "staging", "prod"])
def test_counts_follow_the_network(env: str) -> None:
    units = {line.key: line.units for line in picture(settings_of(env)).lines}
    assert units["natGateway"] == {"dev": 1, "staging": 3, "prod": 3}[env]
    assert units["interfaceEndpoint"] % 3 == 0
    assert units["systemNode"] == settings_of(env).cluster.system_nodes.count


@pytest.mark.parametrize("load", [0.0, -1.0, 1.5, float("nan")])
def test_a_load_that_is_no_share_is_refused(load: float) -> None:
    with pytest.raises(ValueError, match="more than 0, at most 1"):
        picture(settings_of("dev"), load)


def test_the_command_names_what_is_missing_and_every_source() -> None:
    import typer

    from srvmod.infra.cost_commands import cost

    app = typer.Typer()
    app.command()(cost)
    shown = CliRunner().invoke(app, ["--env", "prod", "--json"])
    answer = json.loads(shown.stdout)
    prod = answer["environments"]["prod"]
    assert shown.exit_code == (1 if prod["missing"] else 0)
    for line in prod["lines"]:
        assert (line["price"] is None) == (line["usdPerHour"] is None)
        assert line["price"] is None or (line["price"]["source"] and line["price"]["readOn"])
    assert prod["usdPerHour"] == pytest.approx(sum(line["usdPerHour"] or 0 for line in prod["lines"]), abs=1e-3)
    assert CliRunner().invoke(app, ["--env", "nowhere"]).exit_code == 2
    assert CliRunner().invoke(app, ["--load", "2"]).exit_code == 2
