"""The AWS layer: from settings to network, cluster, identities and weights."""

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from srvmod.infra import identifiers
from srvmod.infra.aws.api_keys import KeysSecret
from srvmod.infra.aws.cluster import Cluster, ClusterArgs
from srvmod.infra.aws.documents.keys import log_key_policy
from srvmod.infra.aws.encryption_key import EncryptionKey, EncryptionKeyArgs
from srvmod.infra.aws.load_balancer_identity import LoadBalancerIdentity, LoadBalancerIdentityArgs
from srvmod.infra.aws.monitoring import (
    AlertPublisher,
    AlertPublisherArgs,
    ManagedPrometheus,
    ManagedPrometheusArgs,
)
from srvmod.infra.aws.network import ExistingNetwork, Network, NetworkArgs, NewNetwork, interface_endpoints
from srvmod.infra.aws.node_identity import NodeIdentity, NodeIdentityArgs
from srvmod.infra.aws.subnets import split
from srvmod.infra.aws.system_nodes import SystemNodes
from srvmod.infra.aws.weights import Weights, WeightsArgs
from srvmod.infra.labels import SERVING, WEIGHT_CACHE
from srvmod.infra.settings import ChartMode, NatGateways, PrometheusKind, Settings


@dataclass(frozen=True)
class Cloud:
    """What later layers read of AWS. `ready` has to exist before anything in the cluster asks AWS for something."""

    aws: aws.Provider
    kubernetes: k8s.Provider
    node_role: str
    instance_profile: str | None
    queue: str
    bucket: str
    isolated: bool
    metrics: ManagedPrometheus | None
    api_keys: pulumi.Output[Mapping[str, str]]
    ready: tuple[pulumi.Resource, ...]
    arns: Mapping[str, pulumi.Input[str]]


def build(settings: Settings) -> Cloud:
    """Declare everything in AWS with one explicit provider, which refuses any account but the stack's."""
    names, account = identifiers.names(settings), identifiers.account(settings)
    provider = aws.Provider("aws", region=account.region, allowed_account_ids=[account.id])
    # First: a deployment without usable keys ends before anything is made.
    keys = KeysSecret(identifiers.api_keys_secret(settings), account, settings.gateway.api_clients).read(provider)
    opts = pulumi.ResourceOptions(providers={"aws": provider})
    groups = [names.flow_log_group, names.control_plane_log_group]
    log_key = EncryptionKey(
        "logs-key", EncryptionKeyArgs(names, account, "logs", log_key_policy(account, groups)), opts
    )
    kept = settings.aws.log_retention_days
    network = Network("network", NetworkArgs(names, account, _network(settings), log_key.arn, kept), opts)
    size = settings.cluster.system_nodes
    cluster = Cluster(
        "cluster",
        ClusterArgs(
            names,
            account,
            vpc_id=network.vpc_id,
            private_subnet_ids=network.private_subnet_ids,
            version=settings.cluster.kubernetes_version.value,
            service_cidr=str(settings.cluster.service_cidr),
            system_nodes=SystemNodes([size.instance_type], count=size.count),
            log_key_arn=log_key.arn,
            log_retention_days=kept,
            public_access_cidrs=[str(cidr) for cidr in settings.cluster.endpoint_public_access_cidrs],
            private_access_cidrs=[str(cidr) for cidr in settings.cluster.endpoint_private_access_cidrs],
            admins=settings.cluster.admins,
            plan_roles=settings.cluster.plan_roles,
            deletion_protection=settings.cluster.deletion_protection,
        ),
        # Nodes can't join, and pods of a destroyed cluster can't leave, without the routes to AWS.
        pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=[network])),
    )
    isolated = settings.network.nat_gateways is NatGateways.NONE
    identity = NodeIdentity(
        "node-identity", NodeIdentityArgs(names, account, cluster.eks_name, instance_profile=isolated), opts
    )
    weights = Weights(
        "weights",
        WeightsArgs(
            names,
            account,
            cluster.eks_name,
            bucket=identifiers.weights_bucket(settings),
            log_bucket=identifiers.log_bucket(settings),
            log_retention_days=kept,
            prefix=settings.model.weights_prefix,
            repository=settings.weight_cache_repository,
            namespace=SERVING,
            service_account=WEIGHT_CACHE,
            force_destroy=settings.aws.simulated,
            protect=settings.cluster.deletion_protection,
        ),
        opts,
    )
    ready: list[pulumi.Resource] = [identity, weights]
    if settings.charts.load_balancer_controller is ChartMode.INSTALL:
        args = LoadBalancerIdentityArgs(names, account, cluster.eks_name)
        ready.append(LoadBalancerIdentity("load-balancer-identity", args, opts))
    metrics = _metrics(settings, cluster.eks_name, opts)
    if isinstance(metrics, pulumi.Resource):
        ready.append(metrics)
    return Cloud(
        aws=provider,
        kubernetes=cluster.kubernetes,
        node_role=identity.node_role,
        instance_profile=identity.instance_profile,
        queue=identity.queue,
        bucket=weights.bucket,
        isolated=isolated,
        metrics=metrics if isinstance(metrics, ManagedPrometheus) else None,
        api_keys=keys,
        ready=tuple(ready),
        arns={
            "cluster": cluster.arn,
            "node_role": identity.node_role_arn,
            "controller_role": identity.controller_role_arn,
            "interruption_queue": identity.queue_arn,
            "weights_bucket": weights.bucket_arn,
            "weights_key": weights.key_arn,
            "weights_reader_role": weights.reader_role_arn,
            "api_keys": account.arn("secretsmanager", f"secret:{identifiers.api_keys_secret(settings)}-??????"),
        },
    )


def _metrics(
    settings: Settings, cluster_name: pulumi.Input[str], opts: pulumi.ResourceOptions
) -> ManagedPrometheus | AlertPublisher | None:
    """What metrics need of AWS: Amazon's Prometheus alerts by itself, an installed Alertmanager needs a role."""
    names, monitoring = identifiers.names(settings), settings.monitoring
    if monitoring.prometheus is PrometheusKind.AMAZON:
        protect = settings.cluster.deletion_protection
        return ManagedPrometheus("metrics", ManagedPrometheusArgs(names, cluster_name, protect), opts)
    if monitoring.alert_topic_arn and settings.charts.prometheus_stack is ChartMode.INSTALL:
        topics = [arn for arn in (monitoring.alert_topic_arn, monitoring.heartbeat_topic_arn) if arn]
        return AlertPublisher("alerts", AlertPublisherArgs(names, cluster_name, topics), opts)
    return None


def _network(settings: Settings) -> NewNetwork | ExistingNetwork:
    network = settings.network
    if network.existing:
        return ExistingNetwork(network.existing.vpc_id, network.existing.private_subnet_ids)
    return NewNetwork(
        cidr=str(network.cidr),
        zones=split(network.cidr, network.zones),
        nat=network.nat_gateways,
        endpoints=interface_endpoints(settings),
        flow_logs=network.flow_logs,
        protect=settings.cluster.deletion_protection,
    )
