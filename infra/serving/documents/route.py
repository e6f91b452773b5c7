"""HTTPRoute, BackendTrafficPolicy and SecurityPolicy: how a stream gets to an engine and who may start one."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from srvmod.infra.labels import ENGINE, Object, metadata
from srvmod.infra.platform.documents.gateway import ENVOY_GROUP, GATEWAY_GROUP
from srvmod.infra.serving.documents.engine import PORT

API_KEYS = "client-keys"
"""Called `api-keys` while it was written as `stringData`: what an apply leaves out of that stays in `data` for ever,
owned by nobody (github.com/kubernetes/kubernetes/issues/108008). A new name leaves those keys behind."""
KEY_HEADER = "authorization"
CLIENT_HEADER = "x-srvmod-client"
PATHS = ("/v1/chat/completions", "/v1/completions", "/v1/models")
"""What clients may call; vLLM's other paths (tokenize, metrics, load, ...) stay inside."""


@dataclass(frozen=True)
class Route:
    """`hostname` None answers to any; `max_stream` and `stream_idle` are Gateway API durations."""

    namespace: str
    gateway: str
    hostname: str | None
    max_stream: str
    stream_idle: str
    max_connections: int


def http_route(route: Route) -> Object:
    """HTTPRoute of the OpenAI API. `request: 0s` because Envoy otherwise ends a stream after 15 s, with status 200."""
    hostnames = {"hostnames": [route.hostname]} if route.hostname else {}
    return {
        "apiVersion": GATEWAY_GROUP,
        "kind": "HTTPRoute",
        "metadata": metadata(ENGINE, route.namespace),
        "spec": {
            "parentRefs": [{"name": route.gateway}],
            **hostnames,
            "rules": [
                {
                    "matches": [{"path": {"type": "PathPrefix", "value": path}} for path in PATHS],
                    "timeouts": {"request": "0s"},
                    "backendRefs": [{"name": ENGINE, "port": PORT}],
                }
            ],
        },
    }


def backend_traffic_policy(route: Route) -> Object:
    """BackendTrafficPolicy: no deadline per request but a longest stream, least-loaded engine, retries before the
    first byte only.

    `streamIdleTimeout` is explicit: Envoy Gateway disables it together with the request time-out. Retries on 5xx or
    reset would restart streams that clients have seen part of; a per-try time-out would cut them. Engines speak
    HTTP/1.1, one connection per stream; the pending queue is small so that overload shows as 503, not as waiting.
    """
    return {
        "apiVersion": ENVOY_GROUP,
        "kind": "BackendTrafficPolicy",
        "metadata": metadata(ENGINE, route.namespace),
        "spec": {
            "targetRefs": [_target()],
            "timeout": {
                "tcp": {"connectTimeout": "2s"},
                "http": {
                    "requestTimeout": "0s",
                    "streamIdleTimeout": route.stream_idle,
                    "maxStreamDuration": route.max_stream,
                    "connectionIdleTimeout": "60s",
                },
            },
            "loadBalancer": {"type": "LeastRequest"},
            "circuitBreaker": {
                "maxConnections": route.max_connections,
                "maxPendingRequests": 32,
                "maxParallelRequests": route.max_connections,
                "maxParallelRetries": 32,
            },
            "retry": {
                "numRetries": 2,
                "numAttemptsPerPriority": 1,
                "retryOn": {
                    "triggers": ["connect-failure", "refused-stream", "reset-before-request"],
                },
                "perRetry": {"backOff": {"baseInterval": "25ms", "maxInterval": "250ms"}},
            },
            "healthCheck": {
                "active": {
                    "type": "HTTP",
                    "interval": "2s",
                    "timeout": "1s",
                    "unhealthyThreshold": 3,
                    "healthyThreshold": 1,
                    "http": {"path": "/health", "method": "GET", "expectedStatuses": [200]},
                },
                # At its default of 50 Envoy sends to sick engines too when half of them are.
                "panicThreshold": 1,
            },
        },
    }


def security_policy(namespace: str) -> Object:
    """SecurityPolicy: an API key as `Authorization: Bearer KEY`; the engine sees the client's name, not its key."""
    return {
        "apiVersion": ENVOY_GROUP,
        "kind": "SecurityPolicy",
        "metadata": metadata(ENGINE, namespace),
        "spec": {
            "targetRefs": [_target()],
            "apiKeyAuth": {
                "credentialRefs": [{"group": "", "kind": "Secret", "name": API_KEYS}],
                "extractFrom": [{"headers": [KEY_HEADER]}],
                "forwardClientIDHeader": CLIENT_HEADER,
                "sanitize": True,
            },
        },
    }


def encoded(keys: Mapping[str, str]) -> dict[str, str]:
    """API keys as a Secret's `data` has them."""
    return {client: base64.b64encode(key.encode()).decode() for client, key in keys.items()}


def api_keys(namespace: str, data: Any, clients: Sequence[str]) -> Object:
    """Secret of the API keys: one entry per client, its name as key. `data` is a secret Output of that mapping,
    encoded.

    Not `stringData`: a client that is taken out of `data` loses its key at the next apply, as its owner gives it up.
    """
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(API_KEYS, namespace, annotations={"srvmod.dev/clients": ",".join(sorted(clients))}),
        "type": "Opaque",
        "data": data,
    }


def _target() -> dict[str, str]:
    return {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": ENGINE}
