"""Alert rules: complete, about metrics that exist, with a runbook that exists, in every form alike."""

import re
from typing import Any

import pytest
import yaml

from srvmod.contract import ITL_P95_MS
from srvmod.infra.platform.documents import dcgm_exporter
from srvmod.infra.serving.documents import alert_rules, alerts, metrics
from srvmod.infra.serving.documents.alert_rules import Fleet
from tests.infra.environment import ROOT

FLEET = Fleet(least=8, most=12)
TOPIC = "arn:aws:sns:eu-west-1:111122223333:llm-on-call"
RULES: list[dict[str, Any]] = [rule for group in alerts.groups(FLEET) for rule in group["rules"]]
BY_NAME = {rule["alert"]: rule for rule in RULES}


def test_what_has_to_be_heard_of_is_there() -> None:
    assert {
        *("InterTokenLatencyHigh", "TimeToFirstTokenHigh", "EnginesMissing", "NoEngine", "EngineMetricsMissing"),
        *("ScalerFails", "ScalerInactive", "FleetAtMaximum", "KvCacheNearlyFull", "RequestsQueue"),
        *("WeightsNotVerified", "WeightsFillFails", "NodeNotReady", "EngineWaitsForNode", "GatewayErrors"),
    } <= BY_NAME.keys()
    assert len(BY_NAME) == len(RULES)


@pytest.mark.parametrize("name", BY_NAME)
def test_each_alert_says_what_to_do(name: str) -> None:
    rule = BY_NAME[name]
    page = rule["annotations"]["runbook"]
    assert (ROOT / page).is_file()
    assert page.rpartition("/")[2] in (ROOT / "docs/runbooks/README.md").read_text(encoding="utf-8")
    assert rule["labels"]["severity"] in {"page", "ticket"}
    assert rule["labels"]["namespace"] == "serving", "the operator routes by it"
    for text in (rule["annotations"]["summary"], rule["annotations"]["description"]):
        assert text
        assert text.count("{{") == text.count("}}")
        # Prometheus knows these two words of ours, and labels that the expression keeps.
        for label in re.findall(r"\$labels\.(\w+)", text):
            assert label in rule["expr"] or label in {"pod", "node"}, label


def test_the_first_alert_is_the_specifications() -> None:
    rule = BY_NAME["InterTokenLatencyHigh"]
    assert f'le="{ITL_P95_MS.value / 1e3:g}"' in rule["expr"]
    assert rule["expr"].endswith("> 0.05")
    assert rule["labels"]["severity"] == "page"
    tighter = alert_rules.latency(Fleet(8, 12, itl_target_seconds=0.025))[0]
    assert 'le="0.025"' in tighter.expression


def test_numbers_are_the_fleets() -> None:
    assert BY_NAME["EnginesMissing"]["expr"].endswith("< 8")
    assert BY_NAME["FleetAtMaximum"]["expr"].endswith(">= 12")


def test_gpu_counters_are_exported() -> None:
    exported = {field for field, _, _ in dcgm_exporter.COUNTERS}
    used = set(re.findall(r"DCGM_\w+", " ".join(rule["expr"] for rule in RULES)))
    assert used
    assert used <= exported


def test_weight_cache_metrics_are_exported() -> None:
    source = (ROOT / "images/weight-cache/weight_cache/status.py").read_text(encoding="utf-8")
    used = set(re.findall(r"weight_cache_\w+", " ".join(rule["expr"] for rule in RULES)))
    assert used
    assert all(name in source for name in used)


def test_all_forms_hold_the_same_rules() -> None:
    groups = alerts.groups(FLEET)
    assert alerts.prometheus_rule(FLEET)["spec"] == {"groups": groups}
    assert yaml.safe_load(alerts.rule_file(FLEET)) == {"groups": groups}
    [(name, text)] = alerts.config_map(FLEET)["data"].items()
    assert name.endswith("rules.yaml")
    assert yaml.safe_load(text) == {"groups": groups}


def test_receiver_and_runbooks_reach_every_rule() -> None:
    [*groups] = alerts.groups(Fleet(8, 12, runbooks="https://git.example.com/llm/docs/runbooks/", receiver="llm"))
    for rule in (rule for group in groups for rule in group["rules"]):
        assert rule["labels"]["receiver"] == "llm"
        page = rule["annotations"]["runbook"].rpartition("/")[2]
        assert rule["annotations"]["runbook_url"] == f"https://git.example.com/llm/docs/runbooks/{page}"


def test_both_alertmanagers_publish_to_the_topic_in_its_region() -> None:
    ours = alerts.alertmanager_config(TOPIC)["spec"]
    amazon = yaml.safe_load(yaml.safe_load(alerts.amazon_alertmanager(TOPIC))["alertmanager_config"])
    [operated] = ours["receivers"][0]["snsConfigs"]
    [managed] = amazon["receivers"][0]["sns_configs"]
    assert operated["topicARN"] == managed["topic_arn"] == TOPIC
    assert operated["sigv4"] == managed["sigv4"] == {"region": "eu-west-1"}
    assert ours["route"]["receiver"] == ours["receivers"][0]["name"] == amazon["route"]["receiver"]


def test_heartbeats_go_to_their_own_topic_where_there_is_one() -> None:
    heart = TOPIC.replace("on-call", "heartbeat")
    assert "AlertsGetOut" not in BY_NAME
    [group] = [one for one in alerts.groups(Fleet(8, 12, heartbeat=True)) if one["name"] == "srvmod-heartbeat"]
    [rule] = group["rules"]
    assert (rule["alert"], rule["expr"], rule["labels"]["severity"]) == ("AlertsGetOut", "vector(1)", "heartbeat")
    assert "for" not in rule
    assert (ROOT / rule["annotations"]["runbook"]).is_file()
    assert "heartbeat" not in str(alerts.alertmanager_config(TOPIC)) + alerts.amazon_alertmanager(TOPIC)
    ours = alerts.alertmanager_config(TOPIC, heart)["spec"]
    amazon = yaml.safe_load(yaml.safe_load(alerts.amazon_alertmanager(TOPIC, heart))["alertmanager_config"])
    assert [one["name"] for one in ours["receivers"]] == [one["name"] for one in amazon["receivers"]]
    [_, route] = ours["route"]["routes"]
    [_, managed] = amazon["route"]["routes"]
    assert route["matchers"] == [{"name": "severity", "value": "heartbeat", "matchType": "="}]
    assert managed["matchers"] == ['severity="heartbeat"']
    assert (route["receiver"], route["repeatInterval"]) == (managed["receiver"], managed["repeat_interval"])
    assert ours["receivers"][1]["snsConfigs"][0]["topicARN"] == heart
    assert amazon["receivers"][1]["sns_configs"][0]["topic_arn"] == heart


def test_monitors_name_ports_that_pods_have() -> None:
    ports = {monitor["metadata"]["name"]: monitor["spec"]["podMetricsEndpoints"] for monitor in metrics.pod_monitors()}
    assert {name: point["port"] for name, [point] in ports.items()} == {
        "engine": "http",
        "weight-cache": "status",
        "envoy": "metrics",
    }
