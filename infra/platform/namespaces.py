"""Namespaces of our own."""

from srvmod.infra.labels import Object, metadata

SERVING = "serving"
ENVOY_GATEWAY = "envoy-gateway-system"


def namespace(name: str) -> Object:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name)}
