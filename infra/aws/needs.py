"""What a stack needs of its account, from settings alone: what `srvmod preflight` asks the account for."""

from srvmod.contract import P5_48XLARGE
from srvmod.contract.account_needs import (
    AccountNeeds,
    ClusterNeeds,
    NetworkNeeds,
    PoolNeeds,
    ReservationNeeds,
    WeightsNeeds,
)
from srvmod.infra import identifiers, versions
from srvmod.infra.aws.network import interface_endpoints
from srvmod.infra.settings import AccessScope, ChartMode, NatGateways, Settings

KEY_PURPOSES = ("logs", "secrets", "weights")
"""Purposes of the KMS keys that the program makes."""


def account_needs(settings: Settings, digest: str) -> AccountNeeds:
    """The needs of a stack. `digest` is that of the file that `settings` came from."""
    names, cluster = identifiers.names(settings), settings.cluster
    return AccountNeeds(
        environment=settings.stack,
        settings_digest=digest,
        account_id=settings.aws.account_id,
        region=settings.aws.region,
        simulated=settings.aws.simulated,
        cluster=ClusterNeeds(
            name=settings.cluster_name,
            kubernetes_version=cluster.kubernetes_version.value,
            public_endpoint=cluster.endpoint_public_access,
            addons={addon.name: addon.version for addon in versions.ADDONS},
            system_instance_type=cluster.system_nodes.instance_type,
            system_nodes=cluster.system_nodes.count,
        ),
        network=_network(settings),
        pool=_pool(settings),
        weights=WeightsNeeds(
            bucket=identifiers.weights_bucket(settings),
            prefix=settings.model.weights_prefix,
            revision=settings.model.revision,
            required=identifiers.weights_files(settings),
        ),
        admins=tuple(admin.principal_arn for admin in cluster.admins),
        deployers=tuple(admin.principal_arn for admin in cluster.admins if admin.scope is AccessScope.CLUSTER_ADMIN),
        plan_roles=cluster.plan_roles,
        key_aliases=tuple(f"alias/{names.of(purpose)}" for purpose in KEY_PURPOSES),
        service_linked_roles=_service_linked_roles(settings),
        api_keys_secret=identifiers.api_keys_secret(settings),
        api_clients=tuple(settings.gateway.api_clients),
        certificate_arn=settings.gateway.certificate_arn,
    )


def _network(settings: Settings) -> NetworkNeeds:
    network, existing = settings.network, settings.network.existing
    gateways = {NatGateways.PER_ZONE: len(network.zones), NatGateways.SINGLE: 1, NatGateways.NONE: 0}
    return NetworkNeeds(
        zones=network.zones,
        existing_vpc_id=existing.vpc_id if existing else None,
        existing_subnet_ids=existing.private_subnet_ids if existing else (),
        vpc_name=identifiers.vpc_name(settings),
        nat_gateways=0 if existing else gateways[network.nat_gateways],
        nat_name_prefix=identifiers.names(settings).of("nat-"),
        interface_endpoints=0 if existing else len(interface_endpoints(settings)),
    )


def _pool(settings: Settings) -> PoolNeeds:
    pool, sizing = settings.pool, settings.sizing
    return PoolNeeds(
        instance_type=P5_48XLARGE.name,
        vcpus=P5_48XLARGE.vcpus,
        quota_code=P5_48XLARGE.quota_code,
        zones=pool.zones,
        min_nodes=sizing.min_nodes,
        max_nodes=sizing.max_nodes,
        capacity_types=tuple(kind.value for kind in pool.capacity_types),
        ami_alias=pool.ami_alias,
        reservations=tuple(
            ReservationNeeds(
                id=reservation.id, tags=reservation.tags, zone=reservation.zone, kind=reservation.kind.value
            )
            for reservation in pool.reservations
        ),
    )


def _service_linked_roles(settings: Settings) -> tuple[str, ...]:
    """EKS and its node groups, which scale by Auto Scaling; load balancers only where our controller makes them."""
    services = ("eks.amazonaws.com", "eks-nodegroup.amazonaws.com", "autoscaling.amazonaws.com")
    if settings.charts.load_balancer_controller is ChartMode.INSTALL:
        return (*services, "elasticloadbalancing.amazonaws.com")
    return services
