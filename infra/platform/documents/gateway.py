"""GatewayClass, EnvoyProxy, Gateway and ClientTrafficPolicy: how clients reach Envoy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from srvmod.infra.labels import PART_OF_LABEL, Object, metadata

CLASS = "envoy"
GATEWAY = "inference"
ENVOY_GROUP = "gateway.envoyproxy.io/v1alpha1"
GATEWAY_GROUP = "gateway.networking.k8s.io/v1"
HTTP_PORT = 80
HTTPS_PORT = 443


@dataclass(frozen=True)
class Gateway:
    """How Envoy runs and what it allows a client. Durations are Gateway API durations (`10s`, `15m`).

    With `max_replicas` a HorizontalPodAutoscaler runs from `replicas` to as many pods.
    `service_type` is ClusterIP or LoadBalancer. `tls_secret` is a kubernetes.io/tls Secret of the namespace; without
    it the listener speaks plain HTTP (TLS ends at the load balancer, or there is none). `max_stream` bounds any
    stream, `stream_idle` one that is silent; `drain` is how long an Envoy that stops waits for its streams.
    """

    namespace: str
    replicas: int
    image: str
    service_type: str
    service_annotations: Mapping[str, str] = field(default_factory=dict[str, str])
    load_balancer_class: str | None = None
    tls_secret: str | None = None
    port: int = HTTP_PORT
    node_selector: Mapping[str, str] = field(default_factory=dict[str, str])
    tolerations: Sequence[Mapping[str, str]] = ()
    cpus: int = 2
    memory: str = "1Gi"
    max_connections: int = 4096
    stream_idle: str = "5m"
    max_stream: str = "15m"
    drain: str = "15m"
    min_drain: str = "15s"
    max_replicas: int | None = None


SCALE_AT_CPU_PERCENT = 60
CALM_SECONDS = 1800
"""How long fewer Envoy pods must be enough before one goes: it drains for as long as its longest stream."""


NLB_CLASS = "service.k8s.aws/nlb"
NLB_PREFIX = "service.beta.kubernetes.io/aws-load-balancer-"


def nlb_annotations(*, internal: bool, certificate: str | None, drain_seconds: int) -> dict[str, str]:
    """What the load balancer controller makes an NLB of.

    Targets are pods. A stopped Envoy keeps its connections while it drains: without the last two attributes the
    NLB resets streams as soon as the target is unhealthy. `drain_seconds` is how long it keeps them then. The idle
    time-out can be raised for TCP listeners only; where the NLB ends TLS it is fixed at 350 s, which TCP keepalive
    stays below.
    """
    annotations = {
        "scheme": "internal" if internal else "internet-facing",
        "nlb-target-type": "ip",
        "attributes": "load_balancing.cross_zone.enabled=true",
        "target-group-attributes": ",".join(
            (
                "deregistration_delay.connection_termination.enabled=false",
                "preserve_client_ip.enabled=true",
                "target_health_state.unhealthy.connection_termination.enabled=false",
                f"target_health_state.unhealthy.draining_interval_seconds={drain_seconds}",
            )
        ),
    }
    if certificate:
        annotations |= {
            "ssl-cert": certificate,
            "ssl-ports": str(HTTPS_PORT),
            "backend-protocol": "tcp",
            # Without it the NLB negotiates no HTTP/2.
            "alpn-policy": "HTTP2Preferred",
        }
    else:
        annotations[f"listener-attributes.TCP-{HTTPS_PORT}"] = "tcp.idle_timeout.seconds=3600"
    return {f"{NLB_PREFIX}{key}": value for key, value in annotations.items()}


def gateway_class() -> Object:
    """GatewayClass that Envoy Gateway's controller serves."""
    return {
        "apiVersion": GATEWAY_GROUP,
        "kind": "GatewayClass",
        "metadata": metadata(CLASS),
        "spec": {"controllerName": "gateway.envoyproxy.io/gatewayclass-controller"},
    }


def envoy_proxy(gateway: Gateway) -> Object:
    """EnvoyProxy: replicas, workers, drain and the Service in front.

    An update takes one pod away before it makes the next: a second one beside it would need a node more, since a system
    node holds one (the settings' rules see to it that each has its place). Only a single Envoy is replaced by surge.

    Workers equal the CPU request: Envoy would start one per CPU of the host. A cleanly drained Envoy needs
    `drainTimeout` of the longest stream, since SIGTERM alone cuts all of them at once.
    """
    pod: dict[str, Any] = {}
    if gateway.node_selector:
        pod["nodeSelector"] = dict(gateway.node_selector)
    if gateway.tolerations:
        pod["tolerations"] = [dict(toleration) for toleration in gateway.tolerations]
    alone = gateway.replicas == 1
    rolling = {"maxSurge": int(alone), "maxUnavailable": int(not alone)}
    # Replicas are the autoscaler's where there is one.
    deployment: dict[str, Any] = {
        **({} if gateway.max_replicas else {"replicas": gateway.replicas}),
        "container": {
            "image": gateway.image,
            "resources": {
                "requests": {"cpu": str(gateway.cpus), "memory": gateway.memory},
                "limits": {"memory": gateway.memory},
            },
        },
        "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling},
    }
    if pod:
        deployment["pod"] = pod
    service: dict[str, Any] = {"type": gateway.service_type}
    if gateway.service_annotations:
        service["annotations"] = dict(gateway.service_annotations)
    if gateway.load_balancer_class:
        service["loadBalancerClass"] = gateway.load_balancer_class
    disruption = {"envoyPDB": {"minAvailable": gateway.replicas - 1}} if gateway.replicas > 1 else {}
    return {
        "apiVersion": ENVOY_GROUP,
        "kind": "EnvoyProxy",
        "metadata": metadata(GATEWAY, gateway.namespace),
        "spec": {
            "concurrency": gateway.cpus,
            "shutdown": {"drainTimeout": gateway.drain, "minDrainDuration": gateway.min_drain},
            "provider": {
                "type": "Kubernetes",
                "kubernetes": {
                    "envoyDeployment": deployment,
                    "envoyService": service,
                    **disruption,
                    **({"envoyHpa": _autoscaler(gateway)} if gateway.max_replicas else {}),
                },
            },
        },
    }


def _autoscaler(gateway: Gateway) -> Object:
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": SCALE_AT_CPU_PERCENT}}
    return {
        "minReplicas": gateway.replicas,
        "maxReplicas": gateway.max_replicas,
        "metrics": [{"type": "Resource", "resource": cpu}],
        "behavior": {
            "scaleDown": {
                "stabilizationWindowSeconds": CALM_SECONDS,
                "policies": [{"type": "Pods", "value": 1, "periodSeconds": CALM_SECONDS}],
            }
        },
    }


def gateway(spec: Gateway) -> Object:
    """Gateway with an HTTP listener, or HTTPS when there is a certificate; routes from its namespace only."""
    own_routes = {"namespaces": {"from": "Same"}}
    listener: dict[str, Any] = {
        "name": "http",
        "protocol": "HTTP",
        "port": spec.port,
        "allowedRoutes": own_routes,
    }
    if spec.tls_secret:
        listener = {
            "name": "https",
            "protocol": "HTTPS",
            "port": spec.port,
            "allowedRoutes": own_routes,
            "tls": {"mode": "Terminate", "certificateRefs": [{"kind": "Secret", "name": spec.tls_secret}]},
        }
    return {
        "apiVersion": GATEWAY_GROUP,
        "kind": "Gateway",
        "metadata": metadata(GATEWAY, spec.namespace),
        "spec": {
            "gatewayClassName": CLASS,
            "infrastructure": {
                "labels": {PART_OF_LABEL: "srvmod"},
                "parametersRef": {"group": "gateway.envoyproxy.io", "kind": "EnvoyProxy", "name": GATEWAY},
            },
            "listeners": [listener],
        },
    }


def client_traffic_policy(spec: Gateway) -> Object:
    """ClientTrafficPolicy: time to send a request, idle and longest streams, sizes, HTTP/2.

    The 100 streams per HTTP/2 connection that Envoy Gateway sets by default would queue a gateway's pooled client;
    one connection is served by one worker, so it isn't unlimited either.
    """
    tls = {"tls": {"minVersion": "1.2", "alpnProtocols": ["h2", "http/1.1"]}} if spec.tls_secret else {}
    return {
        "apiVersion": ENVOY_GROUP,
        "kind": "ClientTrafficPolicy",
        "metadata": metadata(GATEWAY, spec.namespace),
        "spec": {
            "targetRefs": [{"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": GATEWAY}],
            "timeout": {
                "http": {
                    "requestReceivedTimeout": "30s",
                    "idleTimeout": "1h",
                    "streamIdleTimeout": spec.stream_idle,
                }
            },
            "connection": {
                "bufferLimit": "4Mi",
                "connectionLimit": {"value": spec.max_connections},
            },
            "http2": {
                "maxConcurrentStreams": 256,
                "initialStreamWindowSize": "64Ki",
                "initialConnectionWindowSize": "1Mi",
            },
            "headers": {"withUnderscoresAction": "RejectRequest"},
            "tcpKeepalive": {"idleTime": "60s", "interval": "30s", "probes": 3},
            **tls,
        },
    }
