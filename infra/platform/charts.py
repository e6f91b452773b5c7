"""The controllers of the platform, each installed or taken as existing as the settings say."""

from dataclasses import dataclass

import pulumi

from srvmod.infra import draining, identifiers, versions
from srvmod.infra.aws.layer import Cloud
from srvmod.infra.labels import (
    ENVOY_GATEWAY_NAMESPACE,
    KARPENTER,
    KARPENTER_NAMESPACE,
    KEDA_NAMESPACE,
    LOAD_BALANCER_CONTROLLER,
    LOAD_BALANCER_NAMESPACE,
    METRICS_NAMESPACE,
)
from srvmod.infra.platform.controllers import Controller, ControllerArgs
from srvmod.infra.platform.documents import charts
from srvmod.infra.platform.namespaces import namespace
from srvmod.infra.platform.objects import declare
from srvmod.infra.settings import ChartMode, PrometheusKind, Settings

LOAD_BALANCER_GONE_WITHIN = "20m"
"""Envoy's pods finish their streams first (`gateway.maxStreamSeconds`), then the load balancer goes."""


@dataclass(frozen=True)
class Controllers:
    """What other resources wait for."""

    karpenter: Controller
    envoy_gateway: Controller
    load_balancer: Controller
    keda: Controller
    prometheus: Controller

    def all(self) -> tuple[Controller, ...]:
        """Every one, installed or existing."""
        return (self.karpenter, self.envoy_gateway, self.load_balancer, self.keda, self.prometheus)


def install(settings: Settings, cloud: Cloud, opts: pulumi.ResourceOptions) -> Controllers:
    """Declare all controllers. The load balancer controller comes before those that make Services: its webhook
    looks at every new one."""
    load_balancer = _load_balancer(settings, cloud, opts)
    later = after(opts, load_balancer)
    prometheus = _prometheus(settings, cloud, after(later, *cloud.ready))
    return Controllers(
        karpenter=_karpenter(settings, cloud, after(later, *cloud.ready)),
        envoy_gateway=_envoy_gateway(settings, later),
        load_balancer=load_balancer,
        # It brings a PodMonitor, which is the operator's kind.
        keda=_keda(settings, prometheus, after(later, prometheus, *cloud.ready)),
        prometheus=prometheus,
    )


def after(opts: pulumi.ResourceOptions, *resources: pulumi.Resource) -> pulumi.ResourceOptions:
    """`opts`, and to wait for `resources`."""
    return pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(depends_on=list(resources)))


def _karpenter(settings: Settings, cloud: Cloud, opts: pulumi.ResourceOptions) -> Controller:
    return Controller(
        "karpenter",
        ControllerArgs(
            title="Karpenter",
            namespace=KARPENTER_NAMESPACE,
            charts=(versions.KARPENTER_CRDS, versions.KARPENTER),
            values=charts.karpenter(
                settings.cluster_name,
                cloud.queue,
                KARPENTER,
                isolated=cloud.isolated,
                wait_seconds=draining.node_wait_seconds(settings.engine.shutdown_timeout_seconds),
                registry=settings.images.registry,
            ),
            existing=settings.charts.karpenter is ChartMode.EXISTING,
            mirror=settings.charts.repository,
        ),
        opts,
    )


def _envoy_gateway(settings: Settings, opts: pulumi.ResourceOptions) -> Controller:
    if settings.charts.envoy_gateway is ChartMode.INSTALL:
        # Deleting the namespace waits for the Service in it, which waits for its load balancer. Without that the load
        # balancer controller could go first, and the load balancer would stay behind and hold the subnets.
        place = declare(
            "envoy-gateway-namespace",
            namespace(ENVOY_GATEWAY_NAMESPACE),
            pulumi.ResourceOptions.merge(
                opts,
                pulumi.ResourceOptions(custom_timeouts=pulumi.CustomTimeouts(delete=LOAD_BALANCER_GONE_WITHIN)),
            ),
        )
        opts = after(opts, place)
    return Controller(
        "envoy-gateway",
        ControllerArgs(
            title="Envoy Gateway",
            namespace=ENVOY_GATEWAY_NAMESPACE,
            charts=(versions.ENVOY_GATEWAY,),
            values=charts.envoy_gateway(identifiers.image(settings, versions.ENVOY_GATEWAY_IMAGE)),
            existing=settings.charts.envoy_gateway is ChartMode.EXISTING,
            mirror=settings.charts.repository,
        ),
        opts,
    )


def _load_balancer(settings: Settings, cloud: Cloud, opts: pulumi.ResourceOptions) -> Controller:
    existing = settings.network.existing
    vpc = {"vpcId": existing.vpc_id} if existing else {"vpcTags": {"Name": identifiers.vpc_name(settings)}}
    return Controller(
        "load-balancer-controller",
        ControllerArgs(
            title="AWS Load Balancer Controller",
            namespace=LOAD_BALANCER_NAMESPACE,
            charts=(versions.LOAD_BALANCER_CONTROLLER,),
            values=charts.load_balancer_controller(
                settings.cluster_name,
                settings.aws.region,
                LOAD_BALANCER_CONTROLLER,
                vpc,
                registry=settings.images.registry,
            ),
            existing=settings.charts.load_balancer_controller is ChartMode.EXISTING,
            mirror=settings.charts.repository,
        ),
        after(opts, *cloud.ready),
    )


def _keda(settings: Settings, prometheus: Controller, opts: pulumi.ResourceOptions) -> Controller:
    monitored = prometheus.installed or settings.monitoring.prometheus is PrometheusKind.OPERATOR
    return Controller(
        "keda",
        ControllerArgs(
            title="KEDA",
            namespace=KEDA_NAMESPACE,
            charts=(versions.KEDA,),
            values=charts.keda(monitored=monitored, registry=settings.images.registry),
            existing=settings.charts.keda is ChartMode.EXISTING,
            mirror=settings.charts.repository,
            create_namespace=True,
        ),
        opts,
    )


def _prometheus(settings: Settings, cloud: Cloud, opts: pulumi.ResourceOptions) -> Controller:
    amazon: charts.RemoteWrite | None = None
    if cloud.metrics:
        url = pulumi.Output.concat(cloud.metrics.endpoint, "/api/v1/remote_write")
        amazon = charts.RemoteWrite(url, settings.aws.region, settings.cluster_name)
    return Controller(
        "prometheus",
        ControllerArgs(
            title="kube-prometheus-stack",
            namespace=METRICS_NAMESPACE,
            charts=(versions.PROMETHEUS_STACK,),
            values=charts.prometheus_stack(amazon, registry=settings.images.registry),
            existing=settings.charts.prometheus_stack is ChartMode.EXISTING,
            mirror=settings.charts.repository,
            create_namespace=True,
        ),
        opts,
    )
