"""The alert rules in the form that each Prometheus takes, and where its Alertmanager sends them."""

import yaml

from srvmod.infra.labels import SERVING, Object, metadata
from srvmod.infra.serving.documents.alert_rules import GROUPS, HEARTBEAT, TICKET, Alert, Fleet
from srvmod.infra.serving.documents.metrics import MONITORING_GROUP

RUNBOOKS = "docs/runbooks"
RULES_FILE = "srvmod.rules.yaml"
NAME = "engine-alerts"
HEARTBEAT_MINUTES = 5


def groups(fleet: Fleet) -> list[Object]:
    """Rule groups as Prometheus reads them."""
    return [
        {"name": f"srvmod-{name}", "rules": [_rule(alert, fleet) for alert in alerts(fleet)]}
        for name, alerts in GROUPS.items()
        if alerts(fleet)
    ]


def _rule(alert: Alert, fleet: Fleet) -> Object:
    page = f"{RUNBOOKS}/{alert.runbook}"
    address = {"runbook_url": f"{fleet.runbooks.rstrip('/')}/{alert.runbook}"} if fleet.runbooks else {}
    return {
        "alert": alert.name,
        "expr": alert.expression,
        **({"for": f"{alert.minutes}m"} if alert.minutes else {}),
        "labels": {
            "severity": alert.severity,
            # Where the operator routes by: it takes alerts of this namespace for the AlertmanagerConfig in it.
            "namespace": SERVING,
            **({"receiver": fleet.receiver} if fleet.receiver else {}),
        },
        "annotations": {"summary": alert.summary, "description": alert.description, "runbook": page, **address},
    }


def prometheus_rule(fleet: Fleet) -> Object:
    """The Prometheus operator's form."""
    return {
        "apiVersion": MONITORING_GROUP,
        "kind": "PrometheusRule",
        "metadata": metadata(NAME, SERVING),
        "spec": {"groups": groups(fleet)},
    }


def rule_file(fleet: Fleet) -> str:
    """Prometheus' own form, as YAML: what Amazon's service takes, too."""
    return yaml.safe_dump({"groups": groups(fleet)}, sort_keys=False, width=110)


def config_map(fleet: Fleet) -> Object:
    """The rule file for a Prometheus that takes neither: its owner mounts or copies it."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(NAME, SERVING),
        "data": {RULES_FILE: rule_file(fleet)},
    }


def alertmanager_config(topic_arn: str, heartbeat_arn: str | None = None) -> Object:
    """AlertmanagerConfig: this namespace's alerts go to an SNS topic, pages again every hour, tickets once a day; the
    one that always fires goes to a topic of its own, again and again."""
    return {
        "apiVersion": "monitoring.coreos.com/v1alpha1",
        "kind": "AlertmanagerConfig",
        "metadata": metadata(NAME, SERVING),
        "spec": {
            "route": {
                "receiver": "sns",
                "groupBy": ["alertname"],
                "groupWait": "30s",
                "groupInterval": "5m",
                "repeatInterval": "1h",
                "routes": [
                    {
                        "receiver": "sns",
                        "matchers": [{"name": "severity", "value": TICKET, "matchType": "="}],
                        "repeatInterval": "24h",
                    },
                    *([_heartbeat_route()] if heartbeat_arn else []),
                ],
            },
            "receivers": [
                {
                    "name": name,
                    "snsConfigs": [
                        {
                            "topicARN": arn,
                            "sigv4": {"region": arn.split(":")[3]},
                            "sendResolved": True,
                        }
                    ],
                }
                for name, arn in (("sns", topic_arn), (HEARTBEAT, heartbeat_arn))
                if arn
            ],
        },
    }


def _heartbeat_route() -> Object:
    return {
        "receiver": HEARTBEAT,
        "matchers": [{"name": "severity", "value": HEARTBEAT, "matchType": "="}],
        "groupInterval": f"{HEARTBEAT_MINUTES}m",
        "repeatInterval": f"{HEARTBEAT_MINUTES}m",
    }


def amazon_alertmanager(topic_arn: str, heartbeat_arn: str | None = None) -> str:
    """Amazon's Alertmanager definition: its configuration is text inside YAML."""
    every = f"{HEARTBEAT_MINUTES}m"
    heartbeat: Object = {
        "receiver": HEARTBEAT,
        "matchers": [f'severity="{HEARTBEAT}"'],
        "group_interval": every,
        "repeat_interval": every,
    }
    config = {
        "route": {
            "receiver": "sns",
            "group_by": ["alertname"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "1h",
            "routes": [
                {"receiver": "sns", "matchers": [f'severity="{TICKET}"'], "repeat_interval": "24h"},
                *([heartbeat] if heartbeat_arn else []),
            ],
        },
        "receivers": [
            {
                "name": name,
                "sns_configs": [{"topic_arn": arn, "sigv4": {"region": arn.split(":")[3]}, "send_resolved": True}],
            }
            for name, arn in (("sns", topic_arn), (HEARTBEAT, heartbeat_arn))
            if arn
        ],
    }
    return yaml.safe_dump({"alertmanager_config": yaml.safe_dump(config, sort_keys=False)}, sort_keys=False)
