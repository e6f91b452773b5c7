"""The platform layer: from settings to namespaces, controllers, pool, GPU daemons and gateway."""

from dataclasses import dataclass, replace

import pulumi

from srvmod.infra import draining, identifiers, versions
from srvmod.infra.aws.layer import Cloud
from srvmod.infra.labels import (
    NODES_LABEL,
    POOL_LABEL,
    POOL_TAINT,
    SERVING,
    SYSTEM_NODES,
    toleration,
)
from srvmod.infra.platform.admission import Admission
from srvmod.infra.platform.charts import after, install
from srvmod.infra.platform.controllers import Controller
from srvmod.infra.platform.documents import admission as admission_documents
from srvmod.infra.platform.documents import gateway as gateway_documents
from srvmod.infra.platform.documents import pool as pool_documents
from srvmod.infra.platform.gateway import Gateway, GatewayArgs
from srvmod.infra.platform.gpu_daemons import GpuDaemons, GpuDaemonsArgs
from srvmod.infra.platform.namespaces import namespace
from srvmod.infra.platform.objects import declare
from srvmod.infra.platform.plan_access import PlanAccess
from srvmod.infra.platform.pools import Pool, PoolArgs
from srvmod.infra.settings import GatewayScheme, Settings

STREAM_IDLE = "5m"
"""Longest silence of a stream: beyond the slowest first token, below the load balancer's 350 s."""


@dataclass(frozen=True)
class Platform:
    """What the serving layer reads. `ready` has to exist before anything is served."""

    namespace: str
    pool: str
    gateway: str
    keda: Controller
    prometheus: Controller
    ready: tuple[pulumi.Resource, ...]


def build(settings: Settings, cloud: Cloud) -> Platform:
    """Declare everything that is in the cluster before anything is served."""
    opts = pulumi.ResourceOptions(provider=cloud.kubernetes)
    serving = declare("serving", namespace(SERVING), opts)
    admission = Admission("admission", admission_documents.Admission([SERVING], simulated=settings.aws.simulated), opts)
    controllers = install(settings, cloud, opts)
    if settings.cluster.plan_roles:
        installed = [found for found in controllers.all() if found.installed]
        places = sorted({SERVING, *(controller.namespace for controller in installed)})
        PlanAccess("plan-access", places, after(opts, serving, *installed))
    pool = Pool(
        "pool",
        PoolArgs(_pool(settings, cloud), cloud.aws, cloud.ready),
        after(opts, controllers.karpenter, *cloud.ready),
    )
    _gpu_daemons(settings, controllers.prometheus, opts)
    gateway = Gateway(
        "gateway",
        GatewayArgs(gateway_of(settings)),
        # Removed before both: the one ends Envoy's pods, the other the load balancer in front of them.
        after(opts, controllers.envoy_gateway, controllers.load_balancer, serving),
    )
    return Platform(
        namespace=SERVING,
        pool=pool.name,
        gateway=gateway.name,
        keda=controllers.keda,
        prometheus=controllers.prometheus,
        ready=(serving, admission, pool, gateway),
    )


def _pool(settings: Settings, cloud: Cloud) -> pool_documents.Pool:
    names, pool = identifiers.names(settings), settings.pool
    return pool_documents.Pool(
        name=identifiers.POOL,
        nodes=settings.sizing.max_nodes,
        node_role=cloud.node_role,
        instance_profile=cloud.instance_profile,
        discovery=names.discovery_tags(),
        ami_alias=pool.ami_alias,
        capacity_types=[kind.value for kind in pool.capacity_types],
        zones=pool.zones,
        reservations=[
            pool_documents.Reservation(id=reservation.id, tags=reservation.tags) for reservation in pool.reservations
        ],
        consolidate_after=f"{pool.empty_node_seconds}s",
        tags=names.tags(identifiers.POOL),
    )


def _gpu_daemons(settings: Settings, prometheus: Controller, opts: pulumi.ResourceOptions) -> None:
    if settings.aws.simulated:
        pulumi.log.info("NVIDIA device plugin: not installed, pretended nodes bring a pretended one")
        pulumi.log.info("dcgm-exporter: not installed, pretended GPUs have no counters")
        return
    args = GpuDaemonsArgs(
        pool=identifiers.POOL,
        device_plugin_image=identifiers.image(settings, versions.NVIDIA_DEVICE_PLUGIN),
        dcgm_exporter_image=identifiers.image(settings, versions.DCGM_EXPORTER),
        operator=prometheus if prometheus.installed else None,
    )
    GpuDaemons("gpu-daemons", args, opts)


def gateway_of(settings: Settings) -> gateway_documents.Gateway:
    """The gateway as settings describe it. A simulated stack has no system nodes: its Envoy runs on the pool."""
    spec = settings.gateway
    longest = f"{spec.max_stream_seconds}s"
    base = gateway_documents.Gateway(
        namespace=SERVING,
        replicas=spec.replicas,
        max_replicas=spec.max_replicas,
        image=identifiers.image(settings, versions.ENVOY),
        service_type="LoadBalancer",
        load_balancer_class=gateway_documents.NLB_CLASS,
        service_annotations=gateway_documents.nlb_annotations(
            internal=spec.scheme is GatewayScheme.INTERNAL,
            certificate=spec.certificate_arn,
            drain_seconds=draining.unhealthy_target_seconds(spec.max_stream_seconds),
        ),
        tls_secret=spec.tls_secret,
        port=gateway_documents.HTTPS_PORT if spec.tls else gateway_documents.HTTP_PORT,
        node_selector={NODES_LABEL: SYSTEM_NODES},
        stream_idle=STREAM_IDLE,
        max_stream=longest,
        drain=longest,
    )
    if not settings.aws.simulated:
        return base
    pool = {POOL_LABEL: identifiers.POOL}
    return replace(base, node_selector=pool, tolerations=[toleration(POOL_TAINT)], cpus=1)
