"""The alert rules in the form that each Prometheus takes, and where its Alertmanager sends them."""

import yaml

from srvmod.infra.labels import SERVING, Object, metadata
from srvmod.infra.serving.documents.alert_rules import GROUPS, TICKET, Alert, Fleet
from srvmod.infra.serving.documents.metrics import MONITORING_GROUP

RUNBOOKS = "docs/runbooks"
RULES_FILE = "srvmod.rules.yaml"
NAME = "engine-alerts"


def groups(fleet: Fleet) -> list[Object]:
    """Rule groups as Prometheus reads them."""
    return [
        {"name": f"srvmod-{name}", "rules": [_rule(alert, fleet) for alert in alerts(fleet)]}
        for name, alerts in GROUPS.items()
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


def alertmanager_config(topic_arn: str) -> Object:
    """AlertmanagerConfig: this namespace's alerts go to an SNS topic, pages again every hour, tickets once a day."""
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
                    }
                ],
            },
            "receivers": [
                {
                    "name": "sns",
                    "snsConfigs": [
                        {
                            "topicARN": topic_arn,
                            "sigv4": {"region": topic_arn.split(":")[3]},
                            "sendResolved": True,
                        }
                    ],
                }
            ],
        },
    }


def amazon_alertmanager(topic_arn: str) -> str:
    """Amazon's Alertmanager definition: its configuration is text inside YAML."""
    sns = {"topic_arn": topic_arn, "sigv4": {"region": topic_arn.split(":")[3]}, "send_resolved": True}
    config = {
        "route": {
            "receiver": "sns",
            "group_by": ["alertname"],
            "group_wait": "30s",
            "group_interval": "5m",
            "repeat_interval": "1h",
            "routes": [{"receiver": "sns", "matchers": [f'severity="{TICKET}"'], "repeat_interval": "24h"}],
        },
        "receivers": [{"name": "sns", "sns_configs": [sns]}],
    }
    return yaml.safe_dump({"alertmanager_config": yaml.safe_dump(config, sort_keys=False)}, sort_keys=False)
