"""Who scrapes the engines, and what is alerted on."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.monitoring import ManagedPrometheus
from srvmod.infra.platform.objects import declare
from srvmod.infra.serving.documents import alert_rules, metrics
from srvmod.infra.serving.documents import alerts as documents


@dataclass(frozen=True)
class AlertsArgs:
    """`operated`: a Prometheus operator scrapes. With `amazon` its workspace evaluates the rules, and `aws` is the
    provider to declare them with. `topic_arn` is the SNS topic that alerts go to, if any, and `heartbeat_arn` that of
    the one that always fires."""

    fleet: alert_rules.Fleet
    operated: bool
    amazon: ManagedPrometheus | None
    aws: pulumi.ProviderResource
    topic_arn: str | None
    heartbeat_arn: str | None = None


class Alerts(pulumi.ComponentResource):
    """PodMonitors and alert rules in the form that the stack's Prometheus takes, and the way to who hears of them."""

    def __init__(self, name: str, args: AlertsArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:serving:Alerts", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        if args.operated:
            for monitor in metrics.pod_monitors():
                declare(f"{name}-{monitor['metadata']['name']}", monitor, child)
        if args.amazon:
            self._managed(name, args, args.amazon)
        elif args.operated:
            declare(f"{name}-rules", documents.prometheus_rule(args.fleet), child)
            if args.topic_arn:
                declare(f"{name}-route", documents.alertmanager_config(args.topic_arn, args.heartbeat_arn), child)
        else:
            declare(f"{name}-rules", documents.config_map(args.fleet), child)
            pulumi.log.warn(
                f"alert rules are in ConfigMap {documents.NAME}: the existing Prometheus has to load them", self
            )
        self.register_outputs({})

    def _managed(self, name: str, args: AlertsArgs, amazon: ManagedPrometheus) -> None:
        child = pulumi.ResourceOptions(parent=self, provider=args.aws)
        aws.amp.RuleGroupNamespace(
            f"{name}-rules",
            name=documents.NAME,
            workspace_id=amazon.workspace_id,
            data=documents.rule_file(args.fleet),
            opts=child,
        )
        if args.topic_arn:
            aws.amp.AlertManagerDefinition(
                f"{name}-route",
                workspace_id=amazon.workspace_id,
                definition=documents.amazon_alertmanager(args.topic_arn, args.heartbeat_arn),
                opts=child,
            )
