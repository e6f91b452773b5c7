"""Amazon Managed Service for Prometheus, and what Prometheus, KEDA and Alertmanager may do in AWS."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from srvmod.infra.aws.documents import monitoring, trust
from srvmod.infra.aws.documents.statements import Document
from srvmod.infra.aws.names import Names
from srvmod.infra.aws.role import Role, RoleArgs
from srvmod.infra.labels import (
    ALERTMANAGER_ACCOUNT,
    KEDA_ACCOUNT,
    KEDA_NAMESPACE,
    METRICS_NAMESPACE,
    PROMETHEUS_ACCOUNT,
)


@dataclass(frozen=True)
class AlertPublisherArgs:
    """`topic_arns` are the SNS topics that the installed Alertmanager publishes to."""

    names: Names
    cluster_name: pulumi.Input[str]
    topic_arns: Sequence[str]


class AlertPublisher(pulumi.ComponentResource):
    """Alertmanager's role, given to its service account by pod identity. A topic that is encrypted with a key of its
    own needs that key's policy to let the role use it."""

    def __init__(self, name: str, args: AlertPublisherArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:AlertPublisher", name, None, opts)
        _pod_role(
            self,
            args.names,
            args.cluster_name,
            "alertmanager",
            account=(METRICS_NAMESPACE, ALERTMANAGER_ACCOUNT),
            policy=monitoring.publish(args.topic_arns),
        )
        self.register_outputs({})


@dataclass(frozen=True)
class ManagedPrometheusArgs:
    """`protect` keeps the engine from deleting or replacing the workspace, and with it all that was measured."""

    names: Names
    cluster_name: pulumi.Input[str]
    protect: bool = False


class ManagedPrometheus(pulumi.ComponentResource):
    """A workspace, the role that the cluster's Prometheus writes to it with, and the one that KEDA asks it with.

    `endpoint` is the workspace's address without a slash at its end.
    """

    workspace_id: pulumi.Output[str]
    endpoint: pulumi.Output[str]

    def __init__(self, name: str, args: ManagedPrometheusArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("srvmod:aws:ManagedPrometheus", name, None, opts)
        workspace = aws.amp.Workspace(
            f"{name}-workspace",
            alias=args.names.of("metrics"),
            tags=args.names.tags("metrics"),
            opts=pulumi.ResourceOptions(parent=self, protect=args.protect),
        )
        self.workspace_id = workspace.id
        self.endpoint = workspace.prometheus_endpoint.apply(lambda address: address.rstrip("/"))
        for part, account, policy in (
            ("metrics-writer", (METRICS_NAMESPACE, PROMETHEUS_ACCOUNT), monitoring.write(workspace.arn)),
            ("metrics-reader", (KEDA_NAMESPACE, KEDA_ACCOUNT), monitoring.query(workspace.arn)),
        ):
            _pod_role(self, args.names, args.cluster_name, part, account=account, policy=policy)
        self.register_outputs({"endpoint": self.endpoint})


def _pod_role(
    parent: pulumi.Resource,
    names: Names,
    cluster_name: pulumi.Input[str],
    part: str,
    *,
    account: tuple[str, str],
    policy: pulumi.Input[str] | Document,
) -> None:
    """A role with one policy for the service account `(namespace, name)`."""
    child = pulumi.ResourceOptions(parent=parent)
    role = Role(
        part, RoleArgs(names, part, part.replace("-", " "), trust.pod_identity(), policies={part: policy}), child
    )
    aws.eks.PodIdentityAssociation(
        part,
        cluster_name=cluster_name,
        namespace=account[0],
        service_account=account[1],
        role_arn=role.arn,
        tags=names.tags(part),
        opts=child,
    )
