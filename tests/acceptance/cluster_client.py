"""The official Kubernetes client, for tests that judge the stack from outside of its own code."""

from pathlib import Path

from kubernetes import config
from kubernetes.client import ApiClient


def api_client(kubeconfig: Path) -> ApiClient:
    """Client for one kubeconfig; never reads the user's own configuration."""
    return config.new_client_from_config(str(kubeconfig), persist_config=False)
