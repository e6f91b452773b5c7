"""Namespaces of our own."""

from srvmod.infra.labels import Object, metadata


def namespace(name: str) -> Object:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata(name)}
