"""Kubeconfigs for the local stack, and the one client that its parts share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from kubernetes.client import ApiClient


def write_kubeconfig(file: Path, server: str, ca: Path, cert: Path, key: Path) -> Path:
    """A kubeconfig that refers to certificate files by path; returns `file`."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "local", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": "local", "user": {"client-certificate": str(cert), "client-key": str(key)}}],
        "contexts": [{"name": "local", "context": {"cluster": "local", "user": "local"}}],
        "current-context": "local",
    }
    part = file.with_name(file.name + ".part")
    part.touch(mode=0o600)
    part.write_text(yaml.safe_dump(config, sort_keys=False))
    part.replace(file)
    return file


def api_client(kubeconfig: Path) -> ApiClient:
    """Kubernetes client for one kubeconfig; never reads the user's own configuration."""
    from kubernetes import config

    return config.new_client_from_config(str(kubeconfig), persist_config=False)


def untyped(api: object) -> Any:
    """An API of the client, used as the API server documents its objects: the generated classes declare, for every
    call, the union of all that it could return in any mode."""
    return api
